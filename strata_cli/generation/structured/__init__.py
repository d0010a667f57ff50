"""Answers that have to be a document by a schema or a grammar.

Theory. A document may begin in the prefix: what the person wrote and what the model writes are then one document, and
both are held to the grammar and validated together. Whether it does is read from the prefix's first character that is
no blank: one with which a document can begin begins it, and any other is prose before it. Reasoning is never held to
anything; a document begins after it.
"""

"""Completion scripts and manual pages, written from the command definitions."""

from __future__ import annotations


def completion(shell: str) -> str:
    raise NotImplementedError


def man_page(name: str) -> str:
    raise NotImplementedError

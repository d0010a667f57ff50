"""What a template's tool calls look like, learnt from the template; `learn` is where to begin."""

from strata_cli.prompt.toolformat.learn import Learnt, learn
from strata_cli.prompt.toolformat.shape import ToolFormat, Turn

__all__ = ["Learnt", "ToolFormat", "Turn", "learn"]

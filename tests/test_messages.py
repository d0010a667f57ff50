"""What was said cannot be changed."""

from __future__ import annotations

import pytest

from strata_cli.conversation.messages import Message, TextPart, ToolCall
from strata_cli.conversation.request import Request


@pytest.mark.parametrize("value", [TextPart("a"), ToolCall("f", "{}"), Message("user", "a"), Request(())])
def test_values_are_frozen(value) -> None:
    field = next(iter(type(value).__annotations__))
    with pytest.raises(AttributeError):
        setattr(value, field, None)
    assert not hasattr(value, "__dict__")


def test_messages_do_not_share_what_can_change() -> None:
    with pytest.raises(TypeError):
        Message("user").extra["a"] = 1  # type: ignore[index]
    assert Message("user", "a") == Message("user", "a")

"""What a template reads, and the conversation in that form."""

# ruff: noqa: E501 - a template is easier to read on one line
from __future__ import annotations

import datetime

import pytest

from strata_cli import errors
from strata_cli.conversation.messages import ImagePart, Message, TextPart, Tool, ToolCall
from strata_cli.conversation.request import Request
from strata_cli.errors import StrataError
from strata_cli.prompt.adapt import Calls, Reader, adapt
from strata_cli.prompt.template import ChatTemplate

NOW = datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)
EACH = "{% for m in messages %}"
END = "{% endfor %}"
ANY = EACH + "<{{ m.role }}>{{ m.content }}" + END
USER = Message("user", "Hello.")
ANSWER = Message("assistant", "Good day.")


def reader(source: str, *tools: Tool) -> Reader:
    return Reader(ChatTemplate(source, now=NOW), tools)


def adapted(source: str, *messages: Message) -> list[Message]:
    return list(adapt(reader(source), Request(messages)).messages)


def called(arguments: object, identity: str | None = "call_123456789") -> tuple[Message, ...]:
    call = ToolCall("look", arguments, identity)  # type: ignore[arg-type]
    return (USER, Message("assistant", "", tool_calls=(call,)), Message("tool", "clouds", tool_call_id=identity))


@pytest.mark.parametrize(
    ("content", "only_parts"),
    [
        ("{{ m.content }}", False),
        ("{% for p in m.content %}{{ p.text }}{% endfor %}", True),
        ("{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif %}", False),
        ("{{ m.content | tojson if m.content is not string else raise_exception('parts') }}", False),
        ("nothing", False),
    ],
)
def test_strings_or_parts(content: str, only_parts: bool) -> None:
    assert reader(EACH + content + END).only_parts("user") is only_parts


def test_text_parts_are_joined_where_strings_are_read() -> None:
    parts = Message("user", (TextPart("a"), TextPart(" b")))
    assert adapted(ANY, parts) == [Message("user", "a b")]
    assert adapted(EACH + "{% for p in m.content %}{{ p.text }};{% endfor %}" + END, parts) == [parts]


@pytest.mark.parametrize(
    ("part", "form"),
    [
        ("{% if p.type == 'image_url' %}<i>{% else %}{{ p.text }}{% endif %}", "image_url"),
        ("{% if p.type == 'image' %}<i>{% else %}{{ p.text }}{% endif %}", "image"),
        ("{% if 'image' in p or 'image_url' in p %}<i>{% else %}{{ p.text }}{% endif %}", "image_url"),
        (
            "{% if p.type == 'text' %}{{ p.text }}{% elif p.type == 'image' %}<i>{% else %}{{ p | tojson }}{% endif %}",
            "image",
        ),
        ("{% if p.type == 'text' %}{{ p.text }}{% else %}{{ p | tojson }}{% endif %}", None),
        ("{% if p.type == 'text' %}{{ p.text }}{% else %}{{ p }}{% endif %}", None),
        ("{% if p.type == 'text' %}[{{ p.text }}{% elif not loop.first %}]{% endif %}", None),
        ("{% if p.type == 'text' %}{{ p.text }}{% else %}<i>{% endif %}", "image_url"),
        ("{{ p.text }}", None),
        ("{{ raise_exception('no') if p.type != 'text' else p.text }}", None),
    ],
)
def test_the_form_of_images(part: str, form: str | None) -> None:
    source = EACH + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}" + part
    image = Message("user", (TextPart("a"), ImagePart("data:,")))
    found = reader(source + "{% endfor %}{% endif %}" + END)
    assert found.image_form("user") == form
    if form is None:
        with pytest.raises(StrataError) as caught:
            adapt(found, Request((USER, image)))
        assert caught.value.kind is errors.IMAGES_NOT_SUPPORTED
        assert caught.value.param == "messages[1].content"
    else:
        assert found.form(adapt(found, Request((image,))).messages[0])["content"][1]["type"] == form


@pytest.mark.parametrize(
    ("source", "known"),
    [
        (ANY, False),
        (EACH + "<{{ m.role | upper }}>{{ m.content }}" + END, False),
        (EACH + "{% if m.role == 'user' %}{{ m.content }}{% endif %}" + END, False),
        (EACH + "{% if m.role == 'developer' %}{{ raise_exception('no') }}{% endif %}{{ m.content }}" + END, False),
        (EACH + "{% if m.role in ['user', 'developer'] %}{{ m.role + m.content }}{% endif %}" + END, True),
        (EACH + "{{ 'system' if m.role == 'developer' else m.role }}{{ m.content }}" + END, True),
    ],
)
def test_developer(source: str, known: bool) -> None:
    assert reader(source).developer("alone at the start") is known
    role = "developer" if known else "system"
    assert [message.role for message in adapted(source, Message("developer", "a"), USER)][:1] == [role] or not known


def test_leading_systems_are_joined_and_moved_where_there_is_no_place() -> None:
    said = (Message("system", "a"), Message("system", "b"), USER, ANSWER, Message("system", "c"), USER)
    assert adapted(ANY, *said) == [Message("system", "a\n\nb"), USER, ANSWER, Message("system", "c"), USER]
    no_system = EACH + "{% if m.role != 'system' %}{{ m.content }}{% endif %}" + END
    assert adapted(no_system, *said) == [Message("user", "a\n\nb\n\nHello."), ANSWER, Message("user", "c\n\nHello.")]
    last_wins = (
        EACH + "{% if m.role == 'system' %}{% set ns.s = m.content %}{% endif %}" + END + "{{ ns.s }}"
        + EACH + "{% if m.role != 'system' %}{{ m.content }}{% endif %}" + END
    )  # fmt: skip
    last_wins = "{% set ns = namespace(s='') %}" + last_wins
    assert adapted(last_wins, *said) == [Message("system", "a\n\nb"), USER, ANSWER, Message("user", "c\n\nHello.")]


def test_a_moved_system_message_leaves_images_where_they_are() -> None:
    source = (
        EACH + "{% if m.role == 'user' %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{{ p.text if p.type == 'text' else '<i>' }}{% endfor %}{% endif %}{% endif %}" + END
    )
    parts = (ImagePart("data:,"), TextPart("see"))
    moved = adapted(source, Message("system", "a"), Message("user", parts))
    assert moved == [Message("user", (TextPart("a\n\n"), *parts))]
    words = Message("user", (TextPart("see"), ImagePart("data:,")))
    assert adapted(source, Message("system", "a"), words) == [Message("user", (TextPart("a\n\nsee"), words.content[1]))]  # type: ignore[index]


def test_a_developer_is_known_in_its_place_only() -> None:
    first = "{% if m.role == 'developer' and loop.first %}<D>{{ m.content }}{% elif m.role in ['user', 'assistant'] %}{{ m.content }}{% elif m.role == 'system' and loop.first %}<S>{{ m.content }}{% endif %}"
    early, late = Message("developer", "a"), Message("developer", "b")
    source = EACH + first + END
    assert adapted(source, early, USER, ANSWER, late, USER) == [early, USER, ANSWER, Message("user", "b\n\nHello.")]
    assert adapted(source, Message("system", "s"), late, USER) == [Message("system", "s\n\nb"), USER]
    assert adapted(source, early, late, USER) == [Message("system", "a\n\nb"), USER]
    odd = EACH + "<{{ 'rules' if m.role == 'developer' and loop.first else m.role }}>{{ m.content }}" + END
    assert adapted(odd, early, USER, ANSWER, late, USER)[3] == Message("system", "b")


def test_an_image_has_a_place_in_a_tools_result_where_results_follow_calls() -> None:
    source = (
        EACH + "{% if m.role == 'tool' and (loop.first or not loop.previtem.tool_calls) %}{{ raise_exception('no') }}{% endif %}"
        "{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{{ p.text if p.type == 'text' else '<i>' }}{% endfor %}{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}" + END
    )  # fmt: skip
    assert reader(source).image_form("tool") == "image_url"


CALL = EACH + "{% if m.tool_calls %}{% for c in m.tool_calls %}"
CALL_END = "{% endfor %}{% else %}{{ m.content }}{% endif %}" + END


@pytest.mark.parametrize(
    ("call", "calls"),
    [
        ("{{ c.function | tojson }}", Calls(printed=True)),
        ("{{ c.function.name }}{{ c.function.arguments }}", Calls(mapping=False, printed=True)),
        ("{{ c.function.name + c.function.arguments }}", Calls(mapping=False, printed=True)),
        (
            "{{ c.function.name }}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}",
            Calls(printed=True),
        ),
        ("{{ c.function.name }}{{ c.function.arguments | tojson | tojson }}", Calls(mapping=False, printed=True)),
        (
            "{{ raise_exception('id') if c.id | length != 9 else c.function | tojson }}",
            Calls(short_ids=True, printed=True),
        ),
        ("nothing", Calls()),
    ],
)
def test_how_calls_are_read(call: str, calls: Calls) -> None:
    assert reader(CALL + call + CALL_END).calls() == calls


def test_arguments_become_what_is_read() -> None:
    as_mapping, as_text = (
        reader(CALL + "{{ c.function | tojson }}" + CALL_END),
        reader(CALL + "{{ c.function.name + c.function.arguments }}" + CALL_END),
    )
    for arguments in ('{"a": "é"}', {"a": "é"}):
        request = Request(called(arguments))
        assert adapt(as_mapping, request).messages[1].tool_calls[0].arguments == {"a": "é"}
        assert adapt(as_text, request).messages[1].tool_calls[0].arguments == '{"a": "é"}'
    broken = adapt(as_mapping, Request(called('{"a": ')))
    assert broken.messages[1].tool_calls[0].arguments == '{"a": '
    assert broken.notes == ("tool-call arguments that are no JSON object are passed as text",)
    assert adapt(as_mapping, Request(called(""))).messages[1].tool_calls[0].arguments == {}


@pytest.mark.parametrize(
    ("identity", "short"),
    [
        ("abcDEF123", "abcDEF123"),
        ("call_123456789", "123456789"),
        ("a-b", "0000000ab"),
        (None, "000000000"),
        ("é", "000000000"),
    ],
)
def test_short_ids(identity: str | None, short: str) -> None:
    demanding = CALL + "{{ raise_exception('id') if c.id | length != 9 else c.function | tojson }}" + CALL_END
    messages = adapted(demanding, *called({}, identity))
    assert messages[1].tool_calls[0].id == short
    assert messages[2].tool_call_id == short


def test_empty_content_is_null_only_where_that_prints_calls() -> None:
    source = (
        EACH
        + "{% if m.content is none %}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}"
        + END
    )
    assert adapted(source, *called({}))[1].content is None
    assert adapted(source, Message("assistant", None))[0].content == ""
    assert adapted(CALL + "{{ c.function | tojson }}" + CALL_END, *called({}))[1].content == ""


def test_reasoning_has_three_names_and_extras_pass_through() -> None:
    form = reader(ANY).form(Message("assistant", "a", reasoning="r", extra={"prefix": True, "role": "x"}))
    assert form == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "r",
        "thinking": "r",
        "reasoning": "r",
        "prefix": True,
    }
    assert set(reader(ANY).form(USER)) == {"role", "content"}


def test_probes_are_asked_once() -> None:
    asked = reader(ANY)
    adapt(asked, Request(called({})))
    learnt = dict(asked.template.learnt)
    again = Reader(asked.template)
    adapt(again, Request(called({})))
    assert asked.template.learnt == learnt and learnt


def test_a_runaway_template_is_no_answer_to_a_probe() -> None:
    source = "{% if messages[0].role == 'developer' %}{% for i in range(10**9) %}{% endfor %}{% endif %}" + ANY
    with pytest.raises(StrataError) as caught:
        adapt(reader(source), Request((Message("developer", "a"), USER)))
    assert caught.value.kind is errors.TEMPLATE_EXHAUSTED

"""The Jinja environment: what templates may use, what they may not reach, and that none of them runs away."""

# ruff: noqa: E501 - a template is easier to read on one line
from __future__ import annotations

import datetime
import tracemalloc

import pytest

from strata_cli import errors
from strata_cli.conversation.messages import Message
from strata_cli.conversation.request import Request
from strata_cli.errors import StrataError
from strata_cli.prompt.template import ChatTemplate, choose, given
from strata_cli.prompt.turn import compose

NOW = datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.timezone.utc)
HELLO = given([{"role": "user", "content": 'Hé <b> & "it\'s"'}])


def render(source: str, messages: object = HELLO, tools: object = (), **extra: object) -> str:
    template = ChatTemplate(source, bos="<s>", eos="</s>", now=NOW)
    return template.render(messages, tools=tools, add_generation_prompt=True, extra=extra)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ messages[0].content | tojson }}", '"Hé <b> & \\"it\'s\\""'),
        ("{{ messages | map(attribute='role') | tojson }}", '["user"]'),
        ("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='role') | list | tojson }}", '["user"]'),
        ("{{ {'b': 1, 'a': [1]} | tojson(indent=2, sort_keys=true) }}", '{\n  "a": [\n    1\n  ],\n  "b": 1\n}'),
        ("{{ {'a': 1} | tojson(separators=(',', ':')) }}", '{"a":1}'),
        ("{{ strftime_now('%d %B %Y') }} {{ datetime }}", "29 February 2024 Feb 29 2024"),
        ("{{ functions }} {{ tools is defined }}", "[] False"),
        ("{% if true %}\n    a\n{% endif %}\nb", "    a\nb"),
        ("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", "013"),
        ("{% generation %}{% set x = 1 %}a{% endgeneration %}{{ x is defined }}", "aFalse"),
        ("{% set l = [] %}{% set _ = l.append(1) %}{% set _ = l.extend([2, 3]) %}{{ l.pop(0) }}{{ l }}", "1[2, 3]"),
        ("{% set d = dict(messages[0]) %}{% set _ = d.update(role='x') %}{{ d.role }}{{ messages[0].role }}", "xuser"),
        ("{{ bos_token ~ 1 ~ none ~ [1] ~ eos_token }}", "<s>1None[1]</s>"),
        ("{{ '%s-%03d' % ('a', 7) }}{{ '{:>4}|{x}'.format('b', x=1) }}", "a-007   b|1"),
        ("{{ 'a' in 'cat' }}{{ 'a' not in ['b'] }}{{ 1 < 2 < 3 }}{{ [1] == [1] }}", "TrueTrueTrueTrue"),
        ("{{ messages[0]['nothing'] is defined }}{{ messages[0].nothing }}|{{ messages[0].get('x', 'y') }}", "False|y"),
        ("{% for k, v in messages[0].items() %}{{ k }}{{ loop.last }}{{ loop.length }}{% endfor %}", "roleFalse2contentTrue2"),
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}{{ m(1) }}{% call m(3) %}!{% endcall %}", "1232!"),
        ("{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "123"),
        ("{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "4"),
        ("{{ 'a\nb' | indent }}|{{ 'x' | center(5) }}|{{ [3, 1] | sort | join('-') }}|{{ 'abc'[::-1] }}", "a\n    b|  x  |1-3|cba"),
    ],
)  # fmt: skip
def test_what_templates_use(source: str, text: str) -> None:
    assert render(source) == text


def test_tools_are_there_when_there_are_some() -> None:
    tools = given([{"type": "function", "function": {"name": "é"}}])
    assert render("{{ tools[0].function.name }}{{ functions }}", tools=tools) == (
        'é[\n    {\n        "type": "function",\n        "function": {\n            "name": "é"\n        }\n    }\n]'
    )


def test_template_arguments_do_not_replace_the_conversation() -> None:
    assert render("{{ messages | length }}{{ x }}{{ bos_token }}", messages=[], x=1, bos_token="B") == "01B"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("a\n{% if %}", "line 2"),
        ("{{ 'a' | nothing }}", "nothing"),
        ("{% for x in y %}", "line 1"),
        ("{{ " + "(" * 5000 + ")" * 5000 + " }}", "nested"),
    ],
)
def test_bad_syntax_names_its_line(source: str, words: str) -> None:
    with pytest.raises(StrataError) as caught:
        ChatTemplate(source, now=NOW)
    assert caught.value.kind is errors.TEMPLATE_INVALID
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('No tools, please') }}", "the chat template says: No tools, please"),
        ("a\n{{ 'a' + 1 }}", "line 2"),
        ("{{ messages[9].role.x }}", "line 1"),
        ("{{ nothing() }}", "'nothing' is undefined"),
        ("{{ messages[9].role }}", "line 1: list object has no element 9"),
        ("{{ messages[0].nothing.x }}", "line 1: 'dict object' has no attribute 'nothing'"),
        ("{{ 'a' + messages }}", '(not "list")'),
    ],
)
def test_a_templates_refusal_is_quoted(source: str, words: str) -> None:
    with pytest.raises(StrataError) as caught:
        render(source)
    assert caught.value.kind is errors.TEMPLATE_RAISED
    assert words in caught.value.message


UNSAFE = [
    "{{ ''.__class__.__mro__ }}",
    "{{ ''['__class__'] }}",
    "{{ '' | attr('__class__') }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{0[__class__]}'.format(messages) }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{% set f = '{0.__class__}'.format %}{{ f(1) }}",
    "{{ ('{0.__class__}' | attr('format'))(1) }}",
    "{{ ['{0.__class__}'] | map('attr', 'format') | map('attr', '__call__') | list }}",
    "{{ ('{0.__class__}' | safe).format(1) }}",
    "{{ ('{0.__class__}' | e).format(1) }}",
    "{{ ('{x.__class__}' | safe).format_map({'x': 1}) }}",
    "{{ (('{0.__class__}' | safe) | attr('format'))(1) }}",
    "{{ messages | map(attribute='__class__') | list }}",
    "{{ messages | groupby('__class__') | list }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__class__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ joiner.__init__ }}",
    "{{ lipsum.__globals__ }}",
    "{{ dict.mro() }}",
    "{{ {}.__class__.__base__.__subclasses__() }}",
    "{{ self._TemplateReference__context }}",
    "{% macro m() %}{% endmacro %}{{ m._func }}",
    "{% for x in [1] %}{{ loop._iterable }}{% endfor %}",
    "{{ (messages | map('upper')).gi_frame }}",
    "{% include '/etc/passwd' %}",
    "{% import 'x' as y %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}",
    "{{ messages.append(1) }}",
    "{{ messages.clear() }}",
    "{{ messages.sort() }}",
    "{{ messages[0].update({'role': 'x'}) }}",
    "{{ messages[0].pop('role') }}",
    "{{ messages[0] | attr('setdefault') }}",
]


@pytest.mark.parametrize("source", UNSAFE)
def test_what_templates_may_not_reach(source: str) -> None:
    with pytest.raises(StrataError) as caught:
        render(source)
    assert caught.value.kind is errors.TEMPLATE_UNSAFE, caught.value.message
    assert HELLO == [{"role": "user", "content": 'Hé <b> & "it\'s"'}]


_DOUBLED = "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}"
RUNAWAY = [
    "{% for i in range(10**9) %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% break %}{% endfor %}{{ messages | tojson }}{% endfor %}",
    "{% for i in range(999999) if messages == 1 %}{% endfor %}{% for i in range(999999) if messages == 1 %}{% endfor %}",
    "{% set l = [1] %}{% for x in l %}{% set _ = l.append(1) %}{% endfor %}",
    "{% set l = [1] %}{% for i in range(99) %}{% set _ = l.extend(l) %}{% endfor %}",
    "{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
    "{% for x in range(9) recursive %}{{ loop(range(9)) }}{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f() %}{{ caller() }}{% call f() %}{{ caller }}{% endcall %}{% endmacro %}{% call f() %}x{% endcall %}",
    "{% set ns = namespace(x='a') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x=2) %}{% for i in range(100) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{% set ns = namespace(x=2) %}{% for i in range(99999) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{{ 9**9**9 }}",
    "{{ 2 ** -(10**12) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%.999999999f' | format(1.0) }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ 'x'.ljust(10**10) }}",
    "{{ 'x'.center(10**10) }}",
    "{{ 'x'.zfill(10**10) }}",
    "{{ '\t'.expandtabs(10**10) }}",
    "{{ 'a' * 10**10 }}",
    "{{ 10**10 * 'a' }}",
    "{{ [0] * 10**10 }}",
    "{{ (1).to_bytes(10**10, 'big') }}",
    "{{ 'a'.encode().ljust(10**10) }}",
    "{{ ('x' | safe).ljust(10**10) }}",
    "{{ ('x' | e).zfill(10**10) }}",
    "{{ ('x' | safe) * 10**10 }}",
    "{{ ('%999999999d' | safe) % 1 }}",
    "{{ ('a' * 100000) | safe | replace('a', 'b' * 100000) }}",
    "{{ (('a' * 100000) | safe).replace('a', 'b' * 100000) }}",
    "{{ (('b' * 100000) | safe).join('a' * 100000) }}",
    "{{ ('{:999999999}' | safe).format(1) }}",
    "{{ 'a'.translate({97: 'b' * 1000000}) * 1000 }}",
    "{{ 'a' | center(10**10) }}",
    "{{ 'a' | indent(10**10, true) }}",
    "{% filter center(10**10) %}x{% endfilter %}",
    "{{ [1] | batch(10**10, 0) | list }}",
    "{{ [1] | slice(10**10) | list }}",
    "{{ 5 | round(-10**9) }}",
    "{{ {'a': 1} | tojson(indent=10**9) }}",
    "{{ lipsum(n=10**9) }}",
    "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
    "{{ ('b' * 100000).join('a' * 100000) }}",
    "{{ (['b' * 100000] * 10000) | join('x' * 100000) }}",
    "{{ ('a' * 100000) | wordwrap(1, wrapstring='b' * 100000) }}",
    "{{ ([[1] * 1000] * 100000) | sum(start=[]) | length }}",
    "{{ ((((1,) * 1000,) * 1000,) * 1000) | string | length }}",
    "{{ strftime_now('%999999999d') }}",
    "{{ dict.fromkeys(range(10**7)) }}",
    "{{ range(10**10) | list }}",
    "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{{ 'b' in s }}{% endfor %}",
    "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% set x = s[1:] %}{% endfor %}",
    "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if s.find('b') %}{% endif %}{% endfor %}",
    "{% set s = ('a ' * 9999) %}{% for i in range(99999) %}{% if s | title %}{% endif %}{% endfor %}",
    _DOUBLED + "{{ ns.x }}",
    _DOUBLED + "{{ ns.x | tojson }}",
    _DOUBLED + "{{ ns.x == ns.y }}",
    _DOUBLED + "{{ ns.x in [ns.y] }}",
    _DOUBLED + "{% for z in [ns.x, ns.y] %}{{ loop.changed(z) }}{% endfor %}",
    _DOUBLED + "{{ {} [(ns.x, 1)] }}",
    _DOUBLED + "{{ [ns.x, ns.y] | unique | list }}",
    "{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
]


@pytest.mark.parametrize("source", RUNAWAY)
def test_no_template_runs_away(source: str) -> None:
    """Counted, so no clock is needed here either: each of these would need hours or gigabytes without a budget."""
    tracemalloc.start()
    try:
        with pytest.raises(StrataError) as caught:
            compose(ChatTemplate(source, now=NOW), Request((Message("user", "hi"),)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.kind is errors.TEMPLATE_EXHAUSTED, caught.value.message
    assert peak < 100_000_000


def test_budgets_grow_with_the_conversation() -> None:
    source = "{% for m in messages %}{% for n in messages %}{% if m.content == n.content %}{% endif %}{% endfor %}{% endfor %}"
    messages = tuple(Message(("user", "assistant")[index % 2], f"message {index}") for index in range(601))
    assert compose(ChatTemplate(source, now=NOW), Request(messages)).text == ""


def test_the_same_template_stops_at_the_same_place() -> None:
    source = "{% set ns = namespace(n=0) %}{% for i in range(99999) %}{% set ns.n = i %}{% for j in range(99) %}{% endfor %}{% endfor %}"
    words = set()
    for _ in range(2):
        with pytest.raises(StrataError) as caught:
            render(source)
        words.add(caught.value.message)
    assert len(words) == 1


def test_choose() -> None:
    templates = {"default": "a", "tool_use": "b"}
    assert choose(templates, tools=False) == "a"
    assert choose(templates, tools=True) == "b"
    assert choose({"default": "a"}, tools=True) == "a"
    with pytest.raises(StrataError) as caught:
        choose({}, tools=False)
    assert caught.value.kind is errors.NO_CHAT_TEMPLATE

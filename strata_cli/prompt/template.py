"""A chat template: compiled once, rendered in a sandbox with counted budgets. The only importer of jinja2."""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from types import BuiltinMethodType, MethodType, TracebackType
from typing import Any

import jinja2
import jinja2.sandbox
from jinja2 import nodes
from jinja2.runtime import LoopContext
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from strata_cli import errors
from strata_cli.conversation.messages import JsonObject
from strata_cli.errors import StrataError
from strata_cli.prompt import budget as costs
from strata_cli.prompt.budget import Budget, Exhausted

_MUTATORS = frozenset(
    ("append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "sort", "update")
)
_ESCAPES = frozenset(("format", "format_map"))


class Given(dict):  # type: ignore[type-arg]
    """A mapping that belongs to the caller: a template may read it, never change it."""

    __slots__ = ()


class GivenList(list):  # type: ignore[type-arg]
    """A list that belongs to the caller."""

    __slots__ = ()


_DICT_ATTRIBUTES = frozenset(dir(Given))
_PLAIN = frozenset((str, Given, GivenList, list, dict, Namespace, LoopContext))
_GUARDED = _MUTATORS | _ESCAPES
_OWN_NAMES = re.compile(rf"\b({re.escape(__name__)}\.)?Given(List)?\b")
_METHODS = frozenset((BuiltinMethodType, MethodType))


def given(value: Any) -> Any:
    """A JSON value as templates see it: theirs to read, not to change."""
    if isinstance(value, Mapping):
        return Given((key, given(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return GivenList(map(given, value))
    return value


def choose(templates: Mapping[str, str], *, tools: bool) -> str:
    """The source to use: `tool_use` when tools are given, else `default`; raises NO_CHAT_TEMPLATE."""
    if tools and "tool_use" in templates:
        return templates["tool_use"]
    if "default" in templates:
        return templates["default"]
    raise StrataError(errors.NO_CHAT_TEMPLATE, "the model has no chat template", hint=errors.NO_CHAT_TEMPLATE.remedy)


class ChatTemplate:
    """A compiled chat template with the special tokens that it prints; one thread uses it at a time.

    `now` is what the template's clock shows. `learnt` keeps what probes have shown of this template. Raises
    TEMPLATE_INVALID (with the line) and TEMPLATE_UNSAFE.
    """

    def __init__(self, source: str, *, bos: str = "", eos: str = "", now: datetime.datetime) -> None:
        self.source = source
        self.bos = bos
        self.eos = eos
        self.now = now
        self.learnt: dict[object, Any] = {}
        self._date = now.strftime("%b %d %Y")
        self._reads_functions = "functions" in source
        self._environment = _Environment(source, now)
        try:
            self._template = self._environment.from_string(source)
            self._template.globals = dict(self._template.globals)  # a chain of maps is slow to copy per rendering
        except jinja2.TemplateSyntaxError as error:
            raise _invalid(f"line {error.lineno}: {error.message}") from None
        except jinja2.sandbox.SecurityError as error:
            raise _unsafe(str(error)) from None
        except (RecursionError, MemoryError, OverflowError):
            raise _invalid("it is nested too deeply") from None
        except (SyntaxError, ValueError, TypeError, AssertionError) as error:
            raise _invalid(str(error)) from None

    def render(
        self,
        messages: Sequence[Given],
        *,
        tools: Sequence[Given] = (),
        add_generation_prompt: bool,
        extra: JsonObject,
        size: int = 0,
    ) -> str:
        """The text for messages in a template's own form.

        `size` is the conversation's length in characters, from which the budget is made. Raises TEMPLATE_RAISED with
        the template's own words, TEMPLATE_EXHAUSTED and TEMPLATE_UNSAFE.
        """
        variables: dict[str, Any] = {
            "bos_token": self.bos,
            "eos_token": self.eos,
            "functions": json.dumps(tools, indent=4, ensure_ascii=False) if self._reads_functions else "[]",
            "datetime": self._date,
        }
        variables.update(given(extra))
        variables.update(messages=GivenList(messages), add_generation_prompt=add_generation_prompt)
        if tools:
            variables["tools"] = GivenList(tools)
        self._environment.budget = Budget(len(messages), size)
        try:
            return "".join(self._template.root_render_func(self._template.new_context(variables)))
        except (Exhausted, RecursionError, MemoryError, OverflowError) as error:
            raise _exhausted(_words(error, self._line(error.__traceback__))) from None
        except jinja2.sandbox.SecurityError as error:
            raise _unsafe(_words(error, self._line(error.__traceback__))) from None
        except _Raised as error:
            raise _raised(str(error)) from None
        except Exception as error:
            raise _raised(_words(error, self._line(error.__traceback__))) from None

    def _line(self, traceback: TracebackType | None) -> int | None:
        line = None
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == "<template>":
                line = self._template.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line


def _words(error: BaseException, line: int | None) -> str:
    """The error's words, the caller's lists and mappings under the names that the template's author knows."""
    words = _OWN_NAMES.sub(lambda found: "list" if found[2] else "dict", str(error) or type(error).__name__)
    if isinstance(error, RecursionError):
        words = "it calls itself without end"
    return f"line {line}: {words}" if line else words


def _invalid(words: str) -> StrataError:
    message = f"the chat template is not valid: {words}"
    return StrataError(errors.TEMPLATE_INVALID, message, hint=errors.TEMPLATE_INVALID.remedy)


def _unsafe(words: str) -> StrataError:
    message = f"the chat template is not safe to run: {words}"
    return StrataError(errors.TEMPLATE_UNSAFE, message, hint=errors.TEMPLATE_UNSAFE.remedy)


def _exhausted(words: str) -> StrataError:
    message = f"the chat template was stopped: {words}"
    return StrataError(errors.TEMPLATE_EXHAUSTED, message, hint=errors.TEMPLATE_EXHAUSTED.remedy)


def _raised(words: str) -> StrataError:
    return StrataError(errors.TEMPLATE_RAISED, f"the chat template says: {words}", hint=errors.TEMPLATE_RAISED.remedy)


class _Raised(Exception):
    """`raise_exception` was called."""


def _statements(source: str) -> list[type]:
    """The statements that a template may use beyond jinja2's own."""
    if not any(word in source for word in ("break", "continue", "endgeneration")):
        return []
    from jinja2.ext import Extension, LoopControlExtension

    class Generation(Extension):
        """`{% generation %}` marks what a model wrote, for training; here its body simply passes through."""

        tags = {"generation"}  # noqa: RUF012 - the name and type that jinja2 reads

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    return [LoopControlExtension, Generation]


class _Accounting(NodeTransformer):
    """Rewrites a template's syntax so that everything that can repeat or grow pays for itself."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        cost = _size(node.body)
        self.generic_visit(node)
        if node.test is not None:
            node.iter = nodes.Filter(node.iter, "_counted", [], [], None, None, lineno=node.lineno)
        node.body.insert(0, _charge(cost, node.lineno))
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        cost = _size(node.body)
        self.generic_visit(node)
        node.body.insert(0, _charge(cost, node.lineno))
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        return self.visit_Macro(node)  # type: ignore[arg-type]

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [_literal(child) for child in node.nodes]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "_concat", [], [], None, None, lineno=node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.expr, nodes.Const) and isinstance(node.expr.value, (int, float)):
            return node
        if len(node.ops) == 1 and node.ops[0].op in ("in", "notin"):
            contains = nodes.Filter(node.expr, "_contained", [node.ops[0].expr], [], None, None, lineno=node.lineno)
            return contains if node.ops[0].op == "in" else nodes.Not(contains)
        if not all(isinstance(operand.expr, nodes.Const) for operand in node.ops):
            node.expr = nodes.Filter(node.expr, "_walked", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            return nodes.Filter(node, "_made", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = nodes.Filter(node.key, "_walked", [], [], None, None, lineno=node.lineno)
        return node

    def _no_files(self, node: nodes.Node) -> nodes.Node:
        raise jinja2.sandbox.SecurityError(f"line {node.lineno}: it asks for another file")

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _no_files


def _size(body: Sequence[nodes.Node]) -> int:
    """The number of nodes that one run through these runs; what repeats in it pays for itself."""
    total = 1
    stack = list(body)
    while stack:
        node = stack.pop()
        total += 1
        if isinstance(node, nodes.TemplateData):
            total += len(node.data) >> costs.CHARACTERS_PER_STEP
        elif not isinstance(node, (nodes.For, nodes.Macro)):
            stack.extend(node.iter_child_nodes())
    return total


def _charge(cost: int, line: int) -> nodes.Node:
    return nodes.ExprStmt(nodes.Filter(nodes.Const(cost), "_charge", [], [], None, None, lineno=line), lineno=line)


def _literal(child: nodes.Expr) -> nodes.Expr:
    if isinstance(child, nodes.Const) and type(child.value) is str:
        return nodes.TemplateData(child.value, lineno=child.lineno)
    return child


class _Environment(jinja2.sandbox.SandboxedEnvironment):
    """The sandbox: transformers' settings, everything counted, the caller's data out of reach.

    Nothing is folded while compiling (`finalize` that takes the context forbids it, `optimized` off does the rest).
    """

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, source: str, now: datetime.datetime) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=_statements(source),
            optimized=False,
            cache_size=0,
        )
        self.budget = Budget(0, 0)
        self.finalize = jinja2.pass_context(lambda _, value: costs.text_of(self.budget, value))
        for name in ("random", "urlize"):
            del self.filters[name]
        self.filters = {name: self._guarded(name, filter_) for name, filter_ in self.filters.items()}
        self.filters["tojson"] = self._to_json
        self.filters["_charge"] = lambda cost: self.budget.step(cost)
        self.filters["_counted"] = lambda items: self.budget.counted(items)
        self.filters["_made"] = lambda value: self.budget.made(value)
        self.filters["_concat"] = self._concatenate
        self.filters["_contained"] = self._contained
        self.filters["_walked"] = self._walked
        for name in ("eq", "==", "equalto", "ne", "!=", "lt", "<", "lessthan", "gt", ">", "greaterthan", "le", "<=",
                     "ge", ">=", "in"):  # fmt: skip
            self.tests[name] = self._guarded_test(self.tests[name])
        self.globals.update(
            range=self._range, lipsum=_lipsum, raise_exception=_raise, strftime_now=functools.partial(_strftime, now)
        )

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(_Accounting().visit(source), *args, **kwargs)

    # Reading attributes. jinja2 tries `getattr` first; a message has no attributes but a dict's, so look there first.

    def getattr(self, obj: Any, attribute: str) -> Any:
        kind = type(obj)
        if kind is Given and attribute not in _DICT_ATTRIBUTES:
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        if kind in _PLAIN and attribute[:1] != "_" and attribute not in _GUARDED:
            try:
                return getattr(obj, attribute)
            except AttributeError:
                pass
        return self._safe(obj, attribute, super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(argument) is tuple:
            self.budget.walk(argument)
        if type(obj) is Given:
            try:
                return obj[argument]
            except (KeyError, TypeError):
                pass
        return self._safe(obj, argument, super().getitem(obj, argument))

    def _safe(self, obj: Any, attribute: Any, value: Any) -> Any:
        if (
            isinstance(attribute, str)
            and attribute in _MUTATORS
            and isinstance(obj, (Given, GivenList))
            and isinstance(value, BuiltinMethodType)
        ):
            raise jinja2.sandbox.SecurityError(f"{attribute} would change the conversation")
        return value

    def unsafe_undefined(self, obj: Any, attribute: str) -> Any:
        raise jinja2.sandbox.SecurityError(f"it reaches for {attribute!r} of {type(obj).__name__!r}")

    def wrap_str_format(self, value: Any) -> Any:
        if type(value) not in _METHODS or value.__name__ not in _ESCAPES:
            return None
        inner = super().wrap_str_format(value)
        if inner is None:
            return None
        pattern = str(value.__self__)

        def formatted(*args: Any, **kwargs: Any) -> Any:
            costs.format_room(self.budget, pattern, (*args, *kwargs.values()))
            return self.budget.made(inner(*args, **kwargs))

        return formatted

    # Calling and computing.

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = __self.budget
        budget.step(20 + len(args))
        if isinstance(__obj, type):
            for argument in args:
                budget.step(len(argument) if isinstance(argument, Sized) else 0)
        if type(__obj) in _METHODS and isinstance(__obj.__self__, LoopContext):
            budget.walk(args)
        elif type(__obj) is BuiltinMethodType or (type(__obj) is MethodType and isinstance(__obj.__self__, str)):
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            arguments = costs.method_room(budget, __obj.__name__, __obj.__self__, (*args, *kwargs.values()))
            return budget.made(__obj(*(arguments[: len(args)]), **kwargs))
        if isinstance(__obj, LoopContext) and args:
            args = (budget.counted(args[0]) if isinstance(args[0], Iterator) else args[0], *args[1:])
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            return costs.add(self.budget, left, right)
        if operator == "*":
            return costs.multiply(self.budget, left, right)
        if operator == "%":
            return costs.percent(self.budget, left, right)
        return costs.power(self.budget, left, right)

    def _range(self, *args: int) -> range:
        numbers = range(*args)
        if len(numbers) > self.budget.steps:
            raise Exhausted("it counts further than its budget allows")
        return numbers

    # Filters and tests.

    def _guarded(self, name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
        skip = 1 if hasattr(filter_, "jinja_pass_arg") else 0
        before = _BEFORE.get(name)

        @functools.wraps(filter_)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            budget = self.budget
            budget.step(_WEIGHT.get(name, 10))
            if name not in _LIGHT and len(args) > skip:
                args = (*args[:skip], _paid(budget, name, args[skip]), *args[skip + 1 :])
            if before is not None:
                before(budget, *args[skip:], *kwargs.values())
            return budget.made(filter_(*args, **kwargs))

        return guarded

    def _guarded_test(self, test: Callable[..., bool]) -> Callable[..., bool]:
        def guarded(*args: Any) -> bool:
            for argument in args:
                if not isinstance(argument, (str, int, type(None))):
                    self.budget.walk(argument)
            return test(*args)

        return guarded

    def _to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        """Plain JSON: no HTML escaping, no ASCII escaping; what `map` and `select` yield is a list."""
        self.budget.step(60)
        self.budget.walk(value)
        if indent is not None and (len(indent) if isinstance(indent, str) else indent) > 100:
            raise Exhausted("it indents further than its budget allows")
        text = json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
            default=_listed,
        )
        self.budget.grow(len(text))
        return text

    def _concatenate(self, items: list[Any]) -> str:
        return "".join([costs.text_of(self.budget, item) for item in items])

    def _contained(self, item: Any, container: Any) -> bool:
        budget = self.budget
        if isinstance(container, (str, bytes)):
            budget.read(container)
        elif isinstance(container, (list, tuple)):
            budget.step(len(container))
            if not isinstance(item, (str, int, type(None))):
                before = budget.steps
                budget.walk(item)
                budget.step((before - budget.steps) * len(container))
        else:
            budget.walk(item)
        return item in container

    def _walked(self, value: Any) -> Any:
        if type(value) is not int:
            self.budget.walk(value)
        return value


_LIGHT = frozenset(("attr", "count", "d", "default", "first", "items", "length", "random"))
_DEEP = frozenset(("dictsort", "format", "groupby", "join", "max", "min", "pprint", "replace", "sort", "string",
                   "unique", "xmlattr"))  # fmt: skip


# What some filters cost more than others: per call in steps, and for what they read in multiples of its size.
_WEIGHT = {"dictsort": 40, "groupby": 60, "pprint": 100, "sort": 40, "unique": 40, "xmlattr": 60}
_TIMES = {"pprint": 8, "sort": 3, "striptags": 8, "title": 16, "wordcount": 16, "wordwrap": 16, "xmlattr": 8}


def _paid(budget: Budget, name: str, value: Any) -> Any:
    """A filter's input, paid for; a lazy one that a filter would hold whole is made into a list."""
    if name in _DEEP:
        if isinstance(value, Iterator):
            value = list(value)
        for _ in range(_TIMES.get(name, 1)):
            budget.walk(value)
    elif isinstance(value, (str, bytes)):
        budget.step((len(value) >> costs.CHARACTERS_PER_STEP) * _TIMES.get(name, 1))
    elif isinstance(value, (list, tuple, dict, range)):
        budget.step(len(value))
    return value


def _center_room(budget: Budget, _: Any, width: Any = 80) -> None:
    budget.room(int(width))


def _indent_room(budget: Budget, value: Any, width: Any = 4, *_: Any) -> None:
    budget.room((str(value).count("\n") + 1) * (len(width) if isinstance(width, str) else int(width)))


def _batch_room(budget: Budget, _: Any, count: Any, *__: Any) -> None:
    budget.step(abs(int(count)))


def _replace_room(budget: Budget, value: Any, old: Any, new: Any, *_: Any) -> None:
    costs.replace_room(budget, str(value), str(old), str(new))


def _join_room(budget: Budget, value: Any, separator: Any = "", *_: Any) -> None:
    if isinstance(value, (list, tuple)):
        costs.join_room(budget, str(separator), list(value))
    elif isinstance(value, str):
        budget.room(len(value) * (1 + len(str(separator))))


def _format_room(budget: Budget, value: Any, *arguments: Any) -> None:
    costs.percent_room(budget, str(value), arguments)


def _round_room(budget: Budget, _: Any, precision: Any = 0, *__: Any) -> None:
    budget.number(4 * abs(int(precision)))


def _sum_room(budget: Budget, value: Any, *_: Any) -> None:
    if isinstance(value, (list, tuple)) and not all(isinstance(item, (int, float)) for item in value[:1]):
        budget.walk(value)
        budget.step(len(value) * sum(len(item) if isinstance(item, (list, tuple)) else 1 for item in value))


def _wordwrap_room(budget: Budget, value: Any, *arguments: Any) -> None:
    longest = max((len(argument) for argument in arguments if isinstance(argument, str)), default=1)
    budget.room(len(str(value)) * (1 + longest))


_BEFORE: dict[str, Callable[..., None]] = {
    "batch": _batch_room,
    "center": _center_room,
    "format": _format_room,
    "indent": _indent_room,
    "join": _join_room,
    "replace": _replace_room,
    "round": _round_room,
    "slice": _batch_room,
    "sum": _sum_room,
    "wordwrap": _wordwrap_room,
}


def _listed(value: Any) -> Any:
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _raise(message: object) -> None:
    raise _Raised(str(message))


def _lipsum(*_: Any, **__: Any) -> str:
    raise Exhausted("it asks for filler text")


_WIDE = re.compile(r"%[-_0^#+]*\d")


def _strftime(now: datetime.datetime, pattern: str) -> str:
    if len(pattern) > 1000 or _WIDE.search(pattern):
        raise Exhausted("its date format is beyond its budget")
    return now.strftime(pattern)

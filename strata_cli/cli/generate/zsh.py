"""The zsh completion script, a specification for `_arguments` per command."""

from __future__ import annotations

import re
from shlex import quote

from strata_cli.cli.generate.definition import Argument, Command, Option, Value

_HEAD = r"""#compdef strata
# zsh completion for strata. Written from the command definitions; do not edit.

_strata_model_names() {
    local -a names
    names=(${(f)"$(_call_program models strata models list --names 2>/dev/null </dev/null)"})
    _alternative 'models:model:compadd -a names' 'files:GGUF file:_files -g "*.gguf(-.)"'
}
"""

_COMMAND = """
{function}() {{
    _arguments -S \\
{specifications}
}}
"""

_GROUP = """
{function}() {{
    local curcontext=$curcontext state line ret=1
    typeset -A opt_args
    local -a commands=(
{commands}
    )
    _arguments -C -S \\
{specifications} \\
        '(-)1: :->command' \\
        '(-)*:: :->rest' && ret=0
    case $state in
        command)
            _describe -t commands '{line} command' commands && ret=0
            ;;
        rest)
            curcontext="${{curcontext%:*}}-$line[1]:"
            case $line[1] in
{calls}
            esac
            ;;
    esac
    return ret
}}
"""

# Found in $fpath, this file is the function's body; sourced, it registers the function.
_TAIL = """
if [[ $funcstack[1] == _strata ]]; then
    _strata "$@"
else
    compdef _strata strata
fi
"""


def script(program: Command) -> str:
    return _HEAD + "".join(map(_function, program.all())) + _TAIL


def _name(command: Command) -> str:
    return "_" + "__".join(command.words)


def _function(command: Command) -> str:
    specifications = [spec for option in command.options for spec in _option(option)]
    specifications += [_argument(number, argument) for number, argument in enumerate(command.arguments, start=1)]
    body = " \\\n".join(f"        {quote(spec)}" for spec in specifications)
    if not command.commands:
        return _COMMAND.format(function=_name(command), specifications=body)
    return _GROUP.format(
        function=_name(command),
        line=command.line,
        commands="\n".join(f"        {quote(f'{c.name}:{_sentence(c.summary)}')}" for c in command.commands),
        specifications=body,
        calls="\n".join(f"                {c.name}) {_name(c)} && ret=0 ;;" for c in command.commands),
    )


def _option(option: Option) -> list[str]:
    """A specification per name; a name shuts out the others, unless the option may be repeated."""
    others = "*" if option.repeatable else f"({' '.join(option.all_names)})"
    text = re.sub(r"([\\\[\]])", r"\\\1", _sentence(option.help))
    return [f"{others}{_form(name, option.value)}[{text}]{_taken(option.value)}" for name in option.all_names]


def _form(name: str, value: Value | None) -> str:
    """The value follows as the next word, or attached: to --name with =, to -n without."""
    if value is None:
        return name
    if name.startswith("--"):
        return f"{name}="
    return f"{name}+" if len(name) == 2 else name


def _argument(number: int, argument: Argument) -> str:
    where = "*" if argument.repeatable else str(number)
    optional = "" if argument.required or argument.repeatable else ":"
    # The message that stands for free text would keep zsh from inserting an option here.
    return f"{where}{optional}{_taken(argument.value, free_text='()')}"


def _taken(value: Value | None, free_text: str = " ") -> str:
    if value is None:
        return ""
    name = re.sub(r"([\\:])", r"\\\1", value.name)
    match value.completes:
        case "choice":
            words = (re.sub(r"([^A-Za-z0-9_.-])", r"\\\1", choice) for choice in value.choices)
            action = f"({' '.join(words)})"
        case "file":
            action = "_files"
        case "model":
            action = "_strata_model_names"
        case "nothing":
            action = free_text
    return f":{name}:{action}"


def _sentence(text: str) -> str:
    return text.removesuffix(".")

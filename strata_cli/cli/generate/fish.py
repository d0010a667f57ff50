"""The fish completion script: a `complete` line for everything that can be typed, each with its condition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strata_cli.cli.generate.definition import Command, Option, Value

_HEAD = r"""# fish completion for strata. Written from the command definitions; do not edit.

# Whether the option $argv[2] of the command $argv[1] takes a value.
function __strata_takes
    switch "$argv[1] $argv[2]"
        case @TAKING@
            return 0
    end
    return 1
end

# Whether the word after $argv[2] is its value; of flags that are written together the last one decides.
function __strata_wants
    __strata_takes $argv
    and return 0
    string match -qr -- '^-[^-=]+$' $argv[2]
    or return 1
    set -l letters (string split '' -- (string sub -s 2 -- $argv[2]))
    for at in (seq (count $letters))
        if __strata_takes $argv[1] -$letters[$at]
            test $at -eq (count $letters)
            return
        end
    end
    return 1
end

# Whether the words before the cursor call this command and, where $argv[2] is given, so many arguments follow it.
function __strata_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l command strata
    set -l count 0
    set -l wants
    set -l ended
    for word in $words
        if set -q wants[1]
            set -e wants
        else if set -q ended[1]
            set count (math $count + 1)
        else if test "$word" = --
            set ended yes
        else if string match -qr -- '^(--[^\s=]+=|-\S+$)' $word
            __strata_wants $command $word
            and set wants yes
        else if contains -- "$command $word" @COMMANDS@
            set command "$command $word"
            set count 0
        else
            set count (math $count + 1)
        end
    end
    test "$command" = $argv[1]
    or return 1
    not set -q argv[2]
    or test $count -eq $argv[2]
end

function __strata_model_names
    strata models list --names 2>/dev/null </dev/null
end

complete -c strata -f
"""


def script(program: Command) -> str:
    commands = list(program.all())
    taking = [
        _quoted(f"{command.line} {name}")
        for command in commands
        for option in command.options
        if option.value is not None
        for name in option.names
    ]
    below = [_quoted(command.line) for command in commands if command is not program]
    head = _HEAD.replace("@TAKING@", " ".join(taking)).replace("@COMMANDS@", " ".join(below))
    return head + "".join(f"{line}\n" for command in commands for line in _lines(command))


def _lines(command: Command) -> Iterator[str]:
    here = f"complete -c strata -n {_quoted(f'__strata_at {_quoted(command.line)}')}"
    first = f"complete -c strata -n {_quoted(f'__strata_at {_quoted(command.line)} 0')}"
    for below in command.commands:
        yield f"{first} -a {below.name} -d {_described(below.summary)}"
    for number, argument in enumerate(command.arguments):
        if taken := _taken(argument.value):
            where = f"__strata_at {_quoted(command.line)}" + ("" if argument.repeatable else f" {number}")
            yield f"complete -c strata -n {_quoted(where)} {taken} -d {_described(argument.help)}"
    for option in command.options:
        for names in (option.names, option.opposite):
            if names:
                yield " ".join([here, *map(_name, names), *_value(option), "-d", _described(option.help)])


def _name(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name[2:]}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"


def _value(option: Option) -> list[str]:
    if option.value is None:
        return []
    return ["-r" if option.value.completes in ("file", "model") else "-x", *filter(None, [_taken(option.value)])]


def _taken(value: Value) -> str:
    match value.completes:
        case "choice":
            return f"-a {_quoted(' '.join(map(_word, value.choices)))}"
        case "file":
            return "-F"
        case "model":
            return "-F -a '(__strata_model_names)'"
        case "nothing":
            return ""


def _word(choice: str) -> str:
    """fish evaluates what -a is given, so a word that is more than letters is quoted inside the quotes."""
    return choice if re.fullmatch(r"[\w.-]+", choice) else _quoted(choice)


def _described(help: str) -> str:
    return _quoted(help.removesuffix("."))


def _quoted(text: str) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"

"""The bash completion script. It runs on bash 3.2 too, the one of macOS, and needs no bash-completion package."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from strata_cli.cli.generate.definition import Argument, Command, Option, Value

# bash cuts words at the characters of COMP_WORDBREAKS, among them = and :, and replaces only the last piece.
# _strata_words puts the pieces together again; what stands before the last piece is taken off each reply.
_SCRIPT = r"""# bash completion for strata. Written from the command definitions; do not edit.

# Sets words, the words up to the cursor as they are typed, and cut, what bash has cut off the last one.
_strata_words() {
    local rest=${COMP_LINE:0:COMP_POINT} index piece glued
    words=() cut=
    for ((index = 0; index <= COMP_CWORD; index++)); do
        piece=${COMP_WORDS[index]} glued=yes
        while [[ $rest == [[:space:]]* ]]; do
            rest=${rest:1} glued=
        done
        [[ $index -lt $COMP_CWORD ]] || piece=$rest
        rest=${rest:${#piece}}
        if [[ $glued && $index -gt 0 ]]; then
            cut=${words[${#words[@]} - 1]}
            words[${#words[@]} - 1]=$cut$piece
            [[ $piece != [=:] ]] || cut=$cut$piece
        else
            words[${#words[@]}]=$piece cut=
        fi
    done
}

# Sets commands and options, what the command offers.
_strata_command() {
    commands=() options=()
    case $command in
@COMMANDS@
    esac
}

# Sets takes, what the option $1 of the command takes, and choices; empty for a flag and for what is no option.
_strata_option() {
    takes='' choices=()
    case "$command $1" in
@OPTIONS@
    esac
}

# The same for the command's argument number $1, from 0.
_strata_argument() {
    takes='' choices=()
    case "$command $1" in
@ARGUMENTS@
    esac
}

# Whether the option $1 takes the word after it; of flags that are written together the last one decides.
_strata_wants() {
    _strata_option "$1"
    [[ ! $takes && $1 == -[!-]?* && $1 != *=* ]] || return 0
    local at
    for ((at = 1; at < ${#1}; at++)); do
        _strata_option "-${1:at:1}"
        if [[ $takes ]]; then
            [[ $((at + 1)) -eq ${#1} ]] || takes='' choices=()
            return 0
        fi
    done
}

# Finds the command, and what the last word is: sets takes, number (of the argument) and ended (after --).
_strata_read() {
    local index word known
    command=strata number=0 ended='' takes='' choices=()
    _strata_command
    for ((index = 1; index < ${#words[@]} - 1; index++)); do
        word=${words[index]}
        if [[ $takes ]]; then
            takes=''
        elif [[ ! $ended && $word == -- ]]; then
            ended=yes
        elif [[ ! $ended && $word == -?* ]]; then
            _strata_wants "$word"
        else
            for known in "${commands[@]}"; do
                [[ $word != "$known" ]] || command="$command $word" number=-1
            done
            _strata_command
            number=$((number + 1))
        fi
    done
}

# Offers those of the words that begin like the current one.
_strata_reply() {
    local reply
    for reply in "$@"; do
        [[ $reply == "$current"* ]] || continue
        reply=$attached$reply
        COMPREPLY[${#COMPREPLY[@]}]=${reply#"$cut"}
    done
}

# Model names, escaped unless the user has opened a quote; a path instead where no name fits.
_strata_models() {
    local name escaped plain=${current//\\/} quote=
    [[ $current != [\"\']* ]] || quote=yes plain=${current:1}
    while IFS= read -r name; do
        [[ $name == "$plain"* ]] || continue
        printf -v escaped %q "$name"
        [[ ! $quote ]] || escaped=$name
        current='' _strata_reply "$escaped"
    done < <(strata models list --names 2>/dev/null </dev/null)
    [[ ${COMPREPLY+set} ]] || _strata_files
}

# readline's own completion of files knows all about quotes, spaces and ~.
_strata_files() {
    if type compopt &>/dev/null; then
        compopt -o default 2>/dev/null
    else
        local name
        while IFS= read -r name; do
            COMPREPLY[${#COMPREPLY[@]}]=$name
        done < <(compgen -f -- "$current")
    fi
}

_strata() {
    local words cut command commands options takes choices number ended current attached=
    COMPREPLY=()
    _strata_words
    _strata_read
    current=${words[${#words[@]} - 1]}
    if [[ ! $takes && ! $ended && $current == -* ]]; then
        if [[ $current != *=* ]]; then
            _strata_reply "${options[@]}"
            return 0
        fi
        attached=${current%%=*}=
        _strata_option "${current%%=*}"
        current=${current#*=}
    elif [[ ! $takes ]]; then
        [[ $number -ne 0 ]] || _strata_reply "${commands[@]}"
        _strata_argument "$number"
    fi
    case $takes in
        choice) _strata_reply "${choices[@]}" ;;
        model) _strata_models ;;
        file) _strata_files ;;
    esac
    return 0
}

complete -F _strata strata
"""


def script(program: Command) -> str:
    commands = list(program.all())
    return (
        _SCRIPT.replace("@COMMANDS@", _lines(_offered(command) for command in commands))
        .replace("@OPTIONS@", _lines(case for command in commands for case in _options(command)))
        .replace("@ARGUMENTS@", _lines(case for command in commands for case in _arguments(command)))
    )


def _lines(cases: Iterable[str]) -> str:
    return "\n".join(f"        {case}" for case in cases)


def _array(words: Iterable[str]) -> str:
    return f"({' '.join(map(quote, words))})"


def _offered(command: Command) -> str:
    names = [name for option in command.options for name in option.all_names]
    below = f"commands={_array(c.name for c in command.commands)} " if command.commands else ""
    return f"{quote(command.line)}) {below}options={_array(names)} ;;"


def _options(command: Command) -> list[str]:
    """Cases for the options that take something, those that take the same thing together."""
    same: dict[str, list[Option]] = {}
    for option in command.options:
        if option.value is not None:
            same.setdefault(_takes(option.value), []).append(option)
    return [
        f"{' | '.join(quote(f'{command.line} {name}') for option in options for name in option.names)}) {takes} ;;"
        for takes, options in same.items()
    ]


def _arguments(command: Command) -> list[str]:
    return [
        f"{_place(command, argument, number)}) {_takes(argument.value)} ;;"
        for number, argument in enumerate(command.arguments)
    ]


def _place(command: Command, argument: Argument, number: int) -> str:
    return f"{quote(command.line + ' ')}*" if argument.repeatable else quote(f"{command.line} {number}")


def _takes(value: Value) -> str:
    return f"takes='{value.completes}'" + (f" choices={_array(value.choices)}" if value.choices else "")

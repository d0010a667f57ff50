"""The command line. `main` is the only place where an error becomes an exit status."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
from typing import Any, Literal, NoReturn

from strata_cli import environment as process
from strata_cli.environment import Environment, ReaderGone
from strata_cli.errors import INVALID_USAGE, OUTPUT_FAILED, ExitStatus, Interrupted, StrataError

SIGINT = 2


def main() -> NoReturn:
    """Run the command line of this process and end it with the right status, or by the right signal."""
    # A start makes a hundred thousand objects and hardly any garbage: looking for it would take a tenth of the time.
    gc.set_threshold(100_000, 20, 50)
    process.die_of_ctrl_c()
    process.occupy_closed_descriptors()
    environment = process.of_this_process()
    process.end(int(run(sys.argv[1:], environment)))


def run(args: list[str], environment: Environment) -> int:
    """Run one command line; returns the exit status. A signal ends the process itself."""
    try:
        return _run(args, environment)
    except StrataError as error:
        return _show(error, args, environment)
    except (Interrupted, KeyboardInterrupt):
        process.die_of(environment.interrupt.signal or SIGINT)
    except ReaderGone:
        return ExitStatus.OK
    except MemoryError:
        return _show(_out_of_memory(), args, environment)
    except Exception as error:
        return _show(_internal_error(error, environment), args, environment)


def _run(args: list[str], environment: Environment) -> int:
    from typer import Abort, Exit, TyperException

    from strata_cli.cli.app import build

    app = build(args, environment.variables)
    try:
        status = app.main(args or ["--help"], prog_name="strata", standalone_mode=False, obj=environment)
        return status if isinstance(status, int) else ExitStatus.OK
    except Exit as exit:
        return exit.exit_code
    except SystemExit:
        # So Typer ends when a closed pipe is under the help or the version, which it prints itself.
        raise ReaderGone from None
    except Abort:
        raise KeyboardInterrupt from None
    except TyperException as error:
        raise _usage_error(error) from None
    except OSError as error:
        # Only what Typer prints itself is written past our own streams.
        raise StrataError(OUTPUT_FAILED, f"the output could not be written: {error.strerror}") from None


def _usage_error(error: Any) -> StrataError:
    """Typer's usage errors in our form: one line, a suggestion, the command whose help to read."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "strata"
    message = " ".join(error.format_message().split()).rstrip(".?")
    for theirs, ours in ((" (Possible options: ", "; did you mean "), (". Did you mean ", "; did you mean ")):
        message = message.replace(theirs, ours).rstrip(")") if theirs in message else message
    return StrataError(INVALID_USAGE, message[:1].lower() + message[1:], hint=f"see {command} --help")


def _internal_error(error: Exception, environment: Environment) -> StrataError:
    """A fault of ours is one line too; the traceback is for whoever asks for it."""
    from strata_cli.errors import INTERNAL_ERROR

    if environment.debug:
        import traceback

        environment.stderr.text(traceback.format_exc())
    return StrataError(INTERNAL_ERROR, f"internal error: {type(error).__name__}: {error}")


def _out_of_memory() -> StrataError:
    from strata_cli.errors import MODEL_RUN_FAILED

    return StrataError(MODEL_RUN_FAILED, "out of memory", hint="use a smaller context (-c) or a smaller model")


def _show(error: StrataError, args: list[str], environment: Environment) -> int:
    """Say what went wrong, once: on stderr, or as JSON on stdout where JSON was asked for."""
    with contextlib.suppress(ReaderGone, StrataError, Interrupted):
        if dialect := error.dialect or _dialect(args):
            from strata_cli.output.json import error_text

            environment.stdout.text(error_text(error, dialect))
        else:
            from strata_cli.output.terminal.messages import error_line

            environment.stderr.text(error_line(error) + "\n")
    return error.kind.status


def _dialect(args: list[str]) -> Literal["openai", "anthropic"] | None:
    """The shape of an error that comes before a request is known, None where it is to be text.

    Read from the raw arguments, since they may be what is wrong.
    """
    if _value(args, "--format") not in ("json", "jsonl"):
        return None
    return "anthropic" if _value(args, "--dialect") == "anthropic" else "openai"


def _value(args: list[str], option: str) -> str | None:
    """The last value that the arguments give to an option."""
    before = args[: args.index("--")] if "--" in args else args
    attached = [arg.partition("=")[2] for arg in before if arg.startswith(f"{option}=")]
    values = attached + [value for arg, value in itertools.pairwise(before) if arg == option]
    return values[-1] if values else None

"""Where the answer goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from strata_cli.environment import Environment, Stream
from strata_cli.errors import Interrupted


@contextlib.contextmanager
def destination(environment: Environment, file: str | None) -> Iterator[Stream]:
    """Stdout, or the file of --output, which appears when the answer is complete or was stopped."""
    if file is None:
        yield environment.stdout
        return
    from strata_cli.store.files import replacing

    stopped = False
    with replacing(file) as descriptor:
        try:
            yield Stream(descriptor, environment.interrupt)
        except Interrupted:
            stopped = True
    if stopped:
        raise Interrupted

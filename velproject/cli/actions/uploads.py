"""Files of this machine that go with a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from django.core.files import File

from velproject.cli.errors import CliError
from velproject.cli.terminal import one_line


@contextmanager
def opened_uploads(paths: Sequence[Path]) -> Iterator[list[File[Any]]]:
    """The files, open for reading, under their own names."""
    with ExitStack() as stack:
        files = []
        for path in paths:
            try:
                stream = stack.enter_context(path.open("rb"))
            except OSError as error:
                place = one_line(str(path))
                raise CliError(f"--upload {place} cannot be read: {error.strerror}.") from error
            files.append(File(stream, name=path.name))
        yield files

"""The results, errors and exit codes of this skill's scripts.

0: done; 1: the check found problems; 2: wrong arguments; 3: unreadable input;
4: encrypted input; 5: nothing found; 6: missing package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

PROBLEMS, WRONG_CALL, UNREADABLE, ENCRYPTED, NOTHING, MISSING_PACKAGE = 1, 2, 3, 4, 5, 6


class Stop(Exception):
    """Ends the script with an exit code. The message tells what to do."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def run(main: Callable[[], int]) -> NoReturn:
    """Call `main` and exit with the code that it returns. Print a `Stop` as one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = main()
        sys.stdout.flush()
    except Stop as stop:
        print(f"error: {stop}", file=sys.stderr)
        code = stop.code
    except BrokenPipeError:
        # The reader of the pipe, for example `head`, has closed it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def input_file(path: str) -> Path:
    """Return `path` as the path of a readable file. Raises `Stop` with advice."""
    file = Path(path)
    if not file.exists():
        raise Stop(f"{path} does not exist. List the directory and check the name.", WRONG_CALL)
    if not file.is_file():
        raise Stop(f"{path} is not a file. Give the path of one file.", WRONG_CALL)
    if not os.access(file, os.R_OK):
        raise Stop(f"{path} cannot be read: no permission.", WRONG_CALL)
    return file


def deliver(text: str, output: str | None, *inputs: Path) -> None:
    """Print `text`, or write it to the file `output`. `output` must not be one of `inputs`."""
    if output is None:
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
        return
    place = Path(output)
    if any(place.exists() and place.samefile(each) for each in inputs):
        raise Stop(f"{output} is the input. Write to /sandbox/outputs instead.", WRONG_CALL)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise Stop(
            f"{output} cannot be written ({error.strerror}). Write to /sandbox/outputs.", WRONG_CALL
        ) from None
    print(f"wrote {output}", file=sys.stderr)

"""Run the Python blocks of a page in one process: `python -m tests.docs_tools.python_page FILE`.

The file is a JSON list of pieces of code with `name`, `line` and `text`. Later pieces can use the
names of earlier ones.
"""

from __future__ import annotations

import ast
import asyncio
import json
import linecache
import sys
from inspect import CO_COROUTINE
from pathlib import Path
from types import FunctionType
from typing import Any


def run(name: str, line: int, text: str, names: dict[str, Any]) -> None:
    """Run code so that a traceback shows the line of the page. It may use `await`."""
    source = "\n" * line + text
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & CO_COROUTINE:
        asyncio.run(FunctionType(code, names)())
    else:
        exec(code, names)


def main() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, "")
    for piece in json.loads(Path(sys.argv[1]).read_text()):
        run(piece["name"], piece["line"], piece["text"], names)


if __name__ == "__main__":
    main()

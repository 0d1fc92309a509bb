"""Rules for the modules that `execute_python` code can import from its working directory.

Python searches these modules last, and finds one only if the code, or another such module, contains
its name. An approval request shows exactly these files. If the directory were simply the last entry
of `sys.path`, a planted `org/python/core.py` would run at `import pickle`, which tries to import
that optional module.

Python imports this file as `sitecustomize` before the code runs, inside the sandbox. It works with
Python 3.8 and later, and imports only modules that every start has loaded. `sandbox.own_modules`
adds the call of `install`; outside the sandbox only `words` is used.
"""

import _imp
import os
import sys
from _frozen_importlib_external import (
    ExtensionFileLoader,
    FileFinder,
    PathFinder,
    SourceFileLoader,
)

TYPE_CHECKING = False  # importing typing costs as much as the rest of the start
if TYPE_CHECKING:
    from typing import Any

_IN_NAMES = b"_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SEPARATED = bytes(byte if byte in _IN_NAMES or byte > 127 else 32 for byte in range(256))

_named: "set[bytes]" = set()
"""The words of the code and of the modules that it has imported from writable directories."""


def words(source: bytes) -> "set[bytes]":
    """Return all words in `source` that could be names, also in strings and comments."""
    return set(source.translate(_SEPARATED).split())


def install(code: str, directory: str, writable: "tuple[str, ...]", reserved: str) -> None:
    """Let the code in the file `code` import modules of `directory`.

    Modules with `reserved` names (each has a space before and after it) are never imported from the
    `writable` directories, even if the code adds these to `sys.path`.
    """
    sys.path.remove(os.path.dirname(__file__))
    # Programs that the code starts get an ordinary Python. Workers of multiprocessing belong to the
    # code.
    arguments = getattr(sys, "orig_argv", [code])
    is_worker = any("multiprocessing" in argument for argument in arguments)
    if is_worker or code in arguments:
        sys.path_hooks.insert(0, _finder_of(writable, reserved, is_worker))
        sys.meta_path.append(_NamedModules(code, directory))
    _run_sitecustomize_of_the_installation()


class _NamedModules:
    def __init__(self, code: str, directory: str) -> None:
        self._code = code
        self._directory = directory

    def find_spec(self, fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if path is not None:
            return None
        if not _named:
            with open(self._code, "rb") as file:
                _named.update(words(file.read()))
        if fullname.encode("utf-8", "surrogatepass") not in _named:
            return None
        return PathFinder.find_spec(fullname, [self._directory])


class _Source(SourceFileLoader):
    """Loads the source itself, because the compiled code in __pycache__ may be planted."""

    def get_code(self, fullname: str) -> "Any":
        path = self.get_filename(fullname)
        source = self.get_data(path)
        _named.update(words(source))
        return self.source_to_code(source, path)


def _finder_of(writable: "tuple[str, ...]", reserved: str, is_worker: bool) -> "Any":
    # Python resolves links, so it sees a mount below /var/tmp as one below /tmp.
    below = tuple(f"{os.path.realpath(directory)}/" for directory in writable)

    class Finder(FileFinder):
        def find_spec(self, fullname: str, target: "Any" = None) -> "Any":
            # A worker of multiprocessing has the working directory first in `sys.path` until it
            # gets the code's path.
            is_hidden = f" {fullname} " in reserved or (is_worker and "" in sys.path)
            return None if is_hidden else super().find_spec(fullname, target)

    def finder(path: str) -> FileFinder:
        if not f"{os.path.realpath(path)}/".startswith(below) or not os.path.isdir(path):
            raise ImportError(path=path)
        extensions = (ExtensionFileLoader, _imp.extension_suffixes())
        return Finder(path, extensions, (_Source, [".py"]))

    return finder


def _run_sitecustomize_of_the_installation() -> None:
    this = sys.modules.pop(__name__)
    try:
        __import__(__name__)
    except ModuleNotFoundError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = this

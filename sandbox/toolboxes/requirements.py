"""Check an operator's requirements before pip gets them: no options and no code to run."""

from __future__ import annotations

import re
from pathlib import Path

from sandbox.toolboxes.toolbox import ToolboxError

_VERSION = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_NAMED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"\s*(?:\[[A-Za-z0-9._, -]*\])?"
    rf"\s*(?:\(?\s*{_VERSION}(?:\s*,\s*{_VERSION})*\s*\)?)?"
    r"\s*(?:;[A-Za-z0-9_.'\"=<>!~(), -]+)?"
)
_HASH = re.compile(r"\s--hash=(?:sha256|sha384|sha512):[0-9a-f]+")
_FILE_BYTES = 1_000_000


def check_requirement(text: str, *, allow_source: bool = False) -> str:
    """Check one requirement for pip: a name with versions, or a wheel on this host.

    With `allow_source`, also a URL or a path of a package that is built here. Raises
    `ToolboxError`.
    """
    wanted = text.strip()
    if not wanted or not wanted.isprintable():
        raise ToolboxError(f"{text!r} is not a requirement. Use a form like 'pandas>=2'.")
    if wanted.startswith("-"):
        raise ToolboxError(
            f"{wanted!r} is an option, not a requirement. Pass options to vel, which accepts "
            "--index-url, --requirement and --allow-source."
        )
    if _NAMED.fullmatch(wanted) and not wanted.endswith(".whl"):
        return wanted
    path = Path(wanted)
    if wanted.endswith(".whl") and path.is_file():
        return str(path.resolve())
    if allow_source:
        return str(path.resolve()) if path.exists() else wanted
    raise ToolboxError(
        f"{wanted!r} is neither a package name with versions, like 'pandas>=2', nor a wheel on "
        "this host. A package that is built from source runs its own code with your rights. To "
        "allow this, use --allow-source."
    )


def read_requirements(path: Path, *, allow_source: bool = False) -> list[str]:
    """Return the requirements of a file without comments. Hashes are kept, options are refused."""
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_BYTES + 1).decode()
    except OSError as error:
        raise ToolboxError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise ToolboxError(
            f"{path} is not UTF-8 text. Write one requirement on each line."
        ) from None
    if len(text) > _FILE_BYTES:
        raise ToolboxError(f"{path} is longer than {_FILE_BYTES:,} bytes. Use a shorter file.")
    found = []
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        wanted = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not wanted:
            continue
        hashes = [each.group().strip() for each in _HASH.finditer(wanted)]
        try:
            bare = check_requirement(_HASH.sub("", wanted), allow_source=allow_source)
        except ToolboxError as error:
            raise ToolboxError(f"{path}: {error}") from None
        found.append(" ".join([bare, *hashes]))
    return found


def normalised(name: str) -> str:
    """The canonical spelling of a distribution's name, as in the package index."""
    return re.sub(r"[-_.]+", "-", name).lower()

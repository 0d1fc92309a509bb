"""Normalisation of the paths that an agent writes. Uses only text, not the file system."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from types import MappingProxyType

from sandbox.errors import PathRefused

SANDBOX_ROOT = "/sandbox"
AREAS = ("skills", "user_uploads", "shared", "outputs", "workspace")
"""The directories that the agent sees, each below SANDBOX_ROOT."""
READ_ONLY_AREAS = frozenset({"skills", "user_uploads"})
FAMILY_AREAS = ("user_uploads", "shared", "outputs")
"""The areas that a subagent's workspace shares with the workspace of its parent."""
WORKING_DIR = f"{SANDBOX_ROOT}/workspace"
"""The start of relative paths, in file tools and in commands."""

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255


def normalise(path: str, cwd: str = "/") -> str:
    """Return `path` as an absolute path without `.`, `..`, empty parts or a trailing slash.

    Relative paths start at `cwd`. The result never leads above `/`, and normalising it again
    changes nothing. All other characters are kept, including line breaks.

    Raises PathRefused for NUL, for text that is not UTF-8, for `~`, for names and paths longer
    than the kernel's limits, and for a `..` that leads above `/`.
    """
    if len(path) > 2 * MAX_PATH_BYTES:
        raise PathRefused(f"longer than {MAX_PATH_BYTES} bytes. Use a shorter path.", path[:300])
    if "\0" in path:
        raise PathRefused("a path cannot contain a NUL character. Remove it.", path)
    if path == "~" or path.startswith("~/"):
        raise PathRefused("there is no home directory here. Write the path without `~/`.", path)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PathRefused("not valid Unicode. Use a name that is valid UTF-8.", ascii(path)) from (
            None
        )
    parts: list[str] = []
    for part in posixpath.join(cwd, path).split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                raise PathRefused("`..` leads above /. Write the path without it.", path)
            parts.pop()
            continue
        if len(part.encode()) > MAX_NAME_BYTES:
            raise PathRefused(
                f"a name is longer than {MAX_NAME_BYTES} bytes. Use a shorter one.", path[:300]
            )
        parts.append(part)
    result = "/" + "/".join(parts)
    if len(result.encode()) > MAX_PATH_BYTES:
        raise PathRefused(f"longer than {MAX_PATH_BYTES} bytes. Use a shorter path.", path[:300])
    return result


def is_within(path: str, directory: str) -> bool:
    """Return whether the canonical `path` is `directory` or is below it."""
    return directory == "/" or path == directory or path.startswith(directory + "/")


def resolve_workspace_path(
    path: str, host_directories: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the canonical `/sandbox/…` form of a path that an agent wrote.

    Relative paths start in /sandbox/workspace, `/skills/…` is short for /sandbox/skills/…, and
    `/` is /sandbox itself, which contains only the areas.

    Raises PathRefused for all paths outside the areas; the message has the correct form.
    `host_directories` maps areas to their directories on the host. A host path in one of them is
    also refused, with the path that the agent has to use instead.
    """
    absolute = normalise(path, WORKING_DIR)
    if absolute in ("/", SANDBOX_ROOT):
        return SANDBOX_ROOT
    if is_within(absolute, "/skills"):
        return SANDBOX_ROOT + absolute
    if any(is_within(absolute, f"{SANDBOX_ROOT}/{area}") for area in AREAS):
        return absolute
    raise PathRefused(_advice(absolute, host_directories), path)


def _advice(absolute: str, host_directories: Mapping[str, str]) -> str:
    return (
        f"outside the files of this session. Use {_suggestion(absolute, host_directories)!r}, or "
        f"another path in {', '.join(f'{SANDBOX_ROOT}/{area}' for area in AREAS)}. "
        f"Relative paths start in {WORKING_DIR}."
    )


def _suggestion(absolute: str, host_directories: Mapping[str, str]) -> str:
    """Return a likely correction of a path that was refused.

    It keeps all directories, so two paths never become the same path.
    """
    for area, directory in host_directories.items():
        if is_within(absolute, directory):
            return f"{SANDBOX_ROOT}/{area}" + absolute.removeprefix(directory)
    below = absolute.removeprefix(SANDBOX_ROOT) if is_within(absolute, SANDBOX_ROOT) else absolute
    return (SANDBOX_ROOT if below.split("/")[1] in AREAS else WORKING_DIR) + below

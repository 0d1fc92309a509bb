"""A directory of a thread as a zip file."""

from __future__ import annotations

import tempfile
import zipfile
from typing import IO

from django.utils.translation import gettext

from agents.features.file_browser.tree import FileTree, Node
from agents.services.errors import ServiceError
from sandbox.backends import FileBackend
from sandbox.errors import FileError

MOST_BYTES = 200_000_000
"""Maximum size of all files together before compression."""
MEMORY_BYTES = 5_000_000
CHUNK = 256 * 1024


class TooLarge(ServiceError):
    """The directory does not fit into one zip file."""

    code = "too_large"
    http_status = 413


def zip_of(backend: FileBackend, tree: FileTree) -> IO[bytes]:
    """Return the files of a tree as an open zip file, at its start.

    Names in the file are relative to the top of the tree. Omits directories without files, and
    files that cannot be opened, for example because they were just deleted. The caller closes
    the file.

    Raises:
        TooLarge: There are too many files, or too many bytes.
    """
    if tree.is_cut:
        raise TooLarge(
            gettext("The directory has too many files for a zip file. Choose one below it.")
        )
    made = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115  # the caller's
    left = MOST_BYTES
    prefix = tree.top.path.rstrip("/") + "/"
    try:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for node in _files(tree.top):
                left = _add(archive, backend, node, prefix, left)
    except BaseException:
        made.close()
        raise
    made.seek(0)
    return made


def _files(node: Node) -> list[Node]:
    found = [] if node.is_directory else [node]
    for child in node.children:
        found += _files(child)
    return found


def _add(archive: zipfile.ZipFile, backend: FileBackend, node: Node, prefix: str, left: int) -> int:
    """Add a file. Return how many bytes are left."""
    try:
        opened = backend.open_file(node.path)
    except FileError:
        return left
    name = node.path.removeprefix(prefix)
    with opened.stream as stream, archive.open(name, "w", force_zip64=True) as target:
        while chunk := stream.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                text = gettext(
                    "The directory has more than %(most)s MB. Choose a directory below it, or "
                    "download single files."
                )
                raise TooLarge(text % {"most": MOST_BYTES // 1_000_000})
            target.write(chunk)
    return left

"""Open a document, and define the arguments of all scripts of this skill."""

from __future__ import annotations

import argparse
import importlib.util
import io
import re
from pathlib import Path

from outcome import ENCRYPTED, UNREADABLE, WRONG_CALL, Stop, input_file

from pdf_reader.document import Document
from pdf_reader.errors import Encrypted, PdfError

MAX_BYTES = 300 * 1024 * 1024
_RANGE = re.compile(r"(\d{1,6})?(-)?(\d{1,6})?")


def add_arguments(parser: argparse.ArgumentParser, *, pages: bool = True) -> None:
    parser.add_argument("file", help="the PDF file")
    if pages:
        parser.add_argument("--pages", default="", help="such as 1-3,7 or 5-; default: all")
    parser.add_argument("--password", default="", help="for an encrypted file")
    parser.add_argument("--output", help="write here instead of to stdout")


def open_document(path: str, password: str) -> tuple[Path, Document]:
    """Return (path, document). An encrypted document requires pypdf.

    Raises `Stop` with an exit code if the file cannot be read.
    """
    file = input_file(path)
    if file.stat().st_size > MAX_BYTES:
        raise Stop(f"{path} has more than {MAX_BYTES:,} bytes: split it first.", UNREADABLE)
    data = file.read_bytes()
    try:
        try:
            return file, Document(data)
        except Encrypted:
            return file, Document(_decrypted(data, path, password))
    except PdfError as problem:
        raise Stop(f"{path}: {problem}", problem.exit_code) from None


def chosen_pages(given: str, count: int) -> list[int]:
    """Return the chosen page numbers from 1, sorted, each once. Raises `Stop` for missing pages.

    `given` is a text such as `1-3,7`; "" means all `count` pages.
    """
    if not given:
        return list(range(1, count + 1))
    pages: set[int] = set()
    for part in given.replace(" ", "").split(","):
        found = _RANGE.fullmatch(part)
        if not found or not (found[1] or found[3]):
            raise Stop(f"--pages {given} is not understood. Write it like 1-3,7.", WRONG_CALL)
        first = int(found[1] or 1)
        last = int(found[3] or count) if found[2] else first
        if not 1 <= first <= last <= count:
            raise Stop(f"--pages {part}: the file has pages 1 to {count}.", WRONG_CALL)
        pages.update(range(first, last + 1))
    return sorted(pages)


def has_pypdf() -> bool:
    return importlib.util.find_spec("pypdf") is not None


def _decrypted(data: bytes, path: str, password: str) -> bytes:
    if not has_pypdf():
        raise Stop(
            f"{path} is encrypted. Ask for a copy without encryption, or for an agent whose "
            "toolbox has pypdf and cryptography.",
            ENCRYPTED,
        )
    import pypdf  # noqa: PLC0415  # only some toolboxes have it

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if not reader.decrypt(password):
            raise Stop(
                f"{path} is encrypted and "
                + ("the password is wrong." if password else "needs a password: --password."),
                ENCRYPTED,
            )
        copy = io.BytesIO()
        pypdf.PdfWriter(clone_from=reader).write(copy)
    except pypdf.errors.DependencyError:
        raise Stop(
            f"{path} is encrypted with AES, for which the toolbox needs pypdf and "
            "cryptography. Ask for a copy without encryption.",
            ENCRYPTED,
        ) from None
    except Stop:
        raise
    except Exception as problem:  # noqa: BLE001  # whatever a foreign parser makes of damage
        raise Stop(
            f"{path} is encrypted, and pypdf cannot read it: {problem}", UNREADABLE
        ) from None
    return copy.getvalue()

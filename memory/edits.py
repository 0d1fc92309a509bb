"""Edits that agents request, and the content of a file after an edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memory.errors import InvalidEdit
from memory.limits import ALWAYS_BYTES, MAX_FILE_BYTES, TOTAL_BYTES, WARN_SHARE, size_of
from memory.paths import ALWAYS, PERSONAL_ALWAYS
from sandbox.backends.editing import replace_text
from sandbox.errors import InvalidRequest

EditOperation = Literal["write", "append", "delete"]


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """One edit as the model requests it.

    `content` is the whole file for `write`, and the added text for `append`. With `old_text`,
    `content` replaces that text.
    """

    path: str
    operation: EditOperation
    content: str = ""
    reason: str = ""
    old_text: str | None = None
    replace_all: bool = False


def content_after(edit: MemoryEdit, before: str | None) -> str | None:
    """Return the content of the file after `edit`; None if the edit deletes the file.

    `before` is the content before, or None if there is no file. Raises `InvalidEdit`.
    """
    if edit.operation == "delete":
        if before is None:
            raise InvalidEdit(f"There is no {edit.path} to delete: list_memory lists the files.")
        return None
    if size_of_text(edit.content) > MAX_FILE_BYTES:
        raise InvalidEdit(
            f"The content is larger than {MAX_FILE_BYTES:,} bytes, the limit of a file of the "
            "memory: shorten it."
        )
    if edit.old_text is not None:
        if before is None:
            raise InvalidEdit(f"There is no {edit.path}: list_memory lists the files.")
        try:
            changed = replace_text(
                before,
                edit.old_text,
                edit.content,
                replace_all=edit.replace_all,
                max_length=MAX_FILE_BYTES,
            )
        except InvalidRequest as problem:
            raise InvalidEdit(str(problem)) from None
        return changed.text
    if edit.operation == "append" and before:
        joint = "" if before.endswith("\n") else "\n"
        return f"{before}{joint}{edit.content}"
    return edit.content


def size_of_text(text: str) -> int:
    """Return the size of `text` in bytes of UTF-8. Raises `InvalidEdit` for lone surrogates."""
    try:
        return size_of(text)
    except UnicodeEncodeError:
        raise InvalidEdit("The content contains half a character (a lone surrogate).") from None


def always_warnings(path: str, after: str | None) -> list[str]:
    """Return warnings for the approver if prompts always contain the file at `path`.

    These files are `knowledge/always.md` and `me/always.md`. `after` is the content after the edit,
    or None if the file is deleted.
    """
    if path not in (ALWAYS, PERSONAL_ALWAYS) or after is None:
        return []
    size = size_of(after)
    cut = f", of which only the first {ALWAYS_BYTES:,} are" if size > ALWAYS_BYTES else ""
    whose = "" if path == ALWAYS else " that you start"
    return [f"This file is in the prompt of each new conversation{whose} ({size:,} bytes{cut})."]


def size_warnings(total: int) -> list[str]:
    """Return warnings for the approver if the memory is almost full or too large.

    `total` is the size of the memory after the change in bytes.
    """
    if total > TOTAL_BYTES:
        return [
            f"The memory would have {total:,} bytes, over the advised {TOTAL_BYTES:,}: "
            "agents read long files only in part."
        ]
    if total > WARN_SHARE * TOTAL_BYTES:
        return [f"The memory would be {total / TOTAL_BYTES:.0%} full ({total:,} bytes)."]
    return []

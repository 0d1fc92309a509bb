"""Files that approved Python code would import. They run with the code, so they are shown."""

from __future__ import annotations

from agents.review.fields import fields_of
from agents.review.parts import FieldsSection, Note, Unreadable, cut_notes, one_line
from agents.review.room import Room
from sandbox.importable import Importable, ImportableFile

_TITLE = "Files of the workspace that this code can import"
_WHOLE_FILES = "The code can import all of it. Look at the files in the workspace."
_CHANGES_PATH = (
    "The code may change where Python looks for modules (sys.path). Modules of the working "
    "directory are shown here, those of other directories are not."
)


def imports_notes(imports: Importable | Unreadable) -> tuple[Note, ...]:
    """Return warnings about files that are not shown."""
    if isinstance(imports, Unreadable):
        return (Note(f"Files that the code imports are not shown. {imports.reason}", "warning"),)
    notes = []
    if imports.missing:
        problem = one_line(imports.missing)
        notes.append(
            Note(f"Not every file that the code can import is shown. {problem}", "warning")
        )
    if imports.changes_path:
        notes.append(Note(_CHANGES_PATH, "warning"))
    return tuple(notes)


def imports_sections(imports: Importable | Unreadable) -> tuple[FieldsSection, ...]:
    if isinstance(imports, Unreadable) or not imports.files:
        return ()
    room = Room()
    fields = fields_of([(file.path, _text(file)) for file in imports.files], room)
    return (FieldsSection(_TITLE, tuple(fields), cut_notes(room, _WHOLE_FILES)),)


def _text(file: ImportableFile) -> str:
    return f"[{file.reason}]" if file.text is None else file.text.removesuffix("\n")

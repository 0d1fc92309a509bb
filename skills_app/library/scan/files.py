"""The type of a file by its bytes: programs, archives, and misleading names."""

from __future__ import annotations

from collections.abc import Iterator

from skills_app.library.package import PackageFile
from skills_app.library.scan.finding import ScanFinding, Severity
from skills_app.library.scan.kinds import OFFICE, Kind, suffix_of
from skills_app.library.scan.sets import compile_bytes

_PROGRAM = {".so", ".dll", ".dylib", ".exe", ".o", ".a", ".lib", ".class", ".rlib", ".node"}
_TOLD = {"image", "font", "media", "document", "archive", "program", "bytecode", "data"}
_TEXT_SUFFIXES = {
    *(".md", ".txt", ".py", ".sh", ".js", ".ts", ".json", ".yaml", ".yml", ".toml", ".html"),
    *(".css", ".csv", ".xml", ".svg"),
}
_PICKLES = compile_bytes(
    rb"c(?:posix|os|nt)\nsystem\n|c(?:__builtin__|builtins)\n(?:eval|exec)\n|csubprocess\n\w+\n|"
    rb"\x8c\x05posix\x94\x8c\x06system|\x8c\x02os\x94\x8c\x06system|\x8c\x0asubprocess\x94\x8c|"
    rb"\x8c\x08builtins\x94\x8c\x04(?:exec|eval)"
)
"""Names in a pickle before it calls them, in the old protocols and the new."""


def file_findings(file: PackageFile, kind: Kind) -> Iterator[ScanFinding]:
    """Yield findings about a file that is not read as text."""
    suffix = suffix_of(file.path)
    size = f"{len(file.data):,} bytes"

    def found(severity: Severity, code: str, message: str) -> ScanFinding:
        return ScanFinding(severity, code, file.path, 0, message)

    if kind.group == "program":
        yield found("danger", "program", f"{kind.name}, {size}: nobody can read what it does.")
    elif kind.group == "bytecode":
        yield found("warning", "bytecode", f"{kind.name}, {size}: nobody can read what it does.")
    elif kind.group == "archive":
        secret = (
            kind.name == "zip archive" and bool(file.data[6] & 1) if len(file.data) > 6 else False
        )
        yield found(
            "danger" if secret else "warning",
            "archive",
            f"{kind.name}{' under a password' if secret else ''}, {size}: what is in it is not "
            "looked at.",
        )
    elif kind.group == "data":
        severity: Severity = "note" if kind.suffixes else "warning"
        yield found(severity, "binary", f"{kind.name}, {size}.")
    elif kind.group in _TOLD:
        yield found("note", "binary", f"{kind.name}, {size}.")
    if kind is OFFICE and b"vbaProject.bin" in file.data:
        yield found("danger", "macro", "An office file with a macro, which runs when it is opened.")
    if kind.name == "PDF" and (b"/JavaScript" in file.data or b"/Launch" in file.data):
        yield found("warning", "macro", "A PDF that runs something when it is opened.")
    if kind.group != "text":
        yield from _disguised(file, kind, suffix)
    elif suffix in _PROGRAM:
        yield found("warning", "disguised", f"Called {suffix}, but it is text.")
    if _PICKLES.search(file.data):
        yield found("danger", "pickle", "Pickled data that runs a command when it is loaded.")


def _disguised(file: PackageFile, kind: Kind, suffix: str) -> Iterator[ScanFinding]:
    if suffix in kind.suffixes or not suffix:
        return
    if kind.group in ("program", "bytecode"):
        if suffix not in _PROGRAM | {".bin", ".pyc"}:
            message = f"Called {suffix}, but it is a program ({kind.name})."
            yield ScanFinding("danger", "disguised", file.path, 0, message)
    elif suffix in _TEXT_SUFFIXES or (kind.suffixes and kind.group != "data"):
        message = f"Called {suffix}, but it is a {kind.name}."
        yield ScanFinding("warning", "disguised", file.path, 0, message)

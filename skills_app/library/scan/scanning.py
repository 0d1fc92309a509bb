"""Run all checks on a package, within limits of time."""

from __future__ import annotations

from collections.abc import Iterator

from skills_app.library.package import SKILL_FILE, Package, PackageFile
from skills_app.library.scan.addresses import Hosts
from skills_app.library.scan.characters import character_findings, head_findings, hidden_in_bytes
from skills_app.library.scan.code import Effort, code_findings
from skills_app.library.scan.finding import ScanFinding, Severity, bounded
from skills_app.library.scan.kinds import OFFICE, Kind, kind_of, suffix_of
from skills_app.library.scan.languages import Role, is_script, language_of, role_of
from skills_app.library.scan.obfuscation import obfuscation_findings
from skills_app.library.scan.prose import description_findings, prose_findings
from skills_app.library.scan.sets import compile_bytes
from skills_app.library.scan.text import at
from text_scanner.linear import compile_linear

PROSE_BYTES = 150_000
"""The maximum number of characters of a package's prose that are examined.

100 kB take 50 ms, at most 180 ms. A loaded skill gives the model fewer.
"""
CODE_BYTES = 2_000_000
"""The maximum number of bytes of text that all rules examine."""
EFFORT = 45_000_000
"""The maximum number of bytes that the rules examine, summed over the rules.

Of 1,155 public packages one needs 41 million, the others at most 28.
"""

# For bytes beyond the limits: one expression, as fast as memory can be read.
_PLAIN = compile_linear(
    rb"(?:curl|wget)\b[^\n|]*\|\s*(?:ba|z)?sh\b|/dev/tcp/\d|\.ssh/id_(?:rsa|ed25519)|"
    rb"authorized_keys|stratum\+tcp|webhook\.site|discord(?:app)?\.com/api/webhooks|"
    rb"find-generic-password|powershell[^\n]* -e(?:nc|ncodedcommand) |"
    rb"#!/(?:usr/)?bin/|"
    rb"(?:ignore|disregard|forget) (?:all |any )?(?:the |your )?(?:previous|prior|earlier) "
    rb"(?:instructions|messages)|(?:do not|don't|never) (?:tell|inform|mention (?:it|this) to) "
    rb"the user|without telling the user",
    any_case=True,
)  # fmt: skip


def scan_package(package: Package) -> list[ScanFinding]:
    """Return the findings in `package` for a reviewer, worst first.

    The function accepts any bytes and never raises an exception. It examines every byte of every
    file. Bytes beyond the limits are only searched for the plainest signs of an attack, and a
    finding reports this.
    """
    return bounded(list(_findings(package)))


def _findings(package: Package) -> Iterator[ScanFinding]:
    yield from head_findings(package)
    yield from description_findings(package)
    hosts = Hosts()
    scan_limit = _ScanLimit()
    for file in _in_order(package.files):
        yield from _of_file(file, hosts, scan_limit)
    yield from hosts.listed()
    yield from scan_limit.left_out()


class _ScanLimit:
    def __init__(self) -> None:
        self.prose = PROSE_BYTES
        self.code = CODE_BYTES
        self.effort = Effort(EFFORT)
        self.dense: list[str] = []
        self.skipped: dict[str, list[str]] = {}

    def take_prose(self, path: str, text: str) -> str:
        """Return the part of `text` that fits into the remaining limit, and subtract its length."""
        taken = text[: self.prose]
        self.prose -= len(taken)
        if len(taken) < len(text):
            self.skipped.setdefault("prose", []).append(path)
        return taken

    def take_code(self, file: PackageFile, role: Role) -> bool:
        if len(file.data) > self.code:
            self.skipped.setdefault("code" if role == "code" else "data", []).append(file.path)
            return False
        self.code -= len(file.data)
        return True

    def left_out(self) -> Iterator[ScanFinding]:
        for what, paths in self.skipped.items():
            message = (
                f"More {what} than the scan reads completely: it searched {len(paths):,} files "
                "only for the plainest signs."
            )
            # Large files can also hide code.
            severity = "warning" if what == "code" else "note"
            if SKILL_FILE in paths:
                # The model follows SKILL.md. Of 4,136 public ones two are longer than the limit.
                severity = "danger"
                message = f"SKILL.md is longer than the scan reads ({PROSE_BYTES:,} characters)."
            yield ScanFinding(severity, "not-read", paths[0], 0, message)  # type: ignore[arg-type]
        if self.dense:
            message = (
                f"The rules match so often that the scan stopped before the end of "
                f"{len(self.dense):,} files."
            )
            yield ScanFinding("danger", "not-read", self.dense[0], 0, message)


def _in_order(files: tuple[PackageFile, ...]) -> list[PackageFile]:
    """Return SKILL.md, which the model reads, then the other files by size, smallest first."""
    return sorted(files, key=lambda file: (file.path != SKILL_FILE, len(file.data), file.path))


def _of_file(file: PackageFile, hosts: Hosts, scan_limit: _ScanLimit) -> Iterator[ScanFinding]:
    kind = kind_of(file.path, file.data)
    yield from file_findings(file, kind)
    if kind.group != "text":
        yield from _plain_signs(file, told="note")
        return
    data = _as_utf8(file.data)
    language = language_of(file.path, data)
    role = role_of(file.path, language)
    if is_script(language) or file.executable:
        what = f"{language or 'A file'}{', executable' if file.executable else ''}"
        yield ScanFinding("note", "script", file.path, 0, f"Can be run: {what}.")
    if not scan_limit.effort.left:
        scan_limit.dense.append(file.path)
    if not scan_limit.effort.left or not scan_limit.take_code(file, role):
        yield from _plain_signs(file, told="warning")
        yield from hidden_in_bytes(file.path, data)
        return
    yield from code_findings(file.path, data, role, scan_limit.effort)
    if not scan_limit.effort.left:
        scan_limit.dense.append(file.path)
    yield from hosts.look_at(file.path, data, code=role == "code")
    text = data.decode("utf-8", "replace")
    yield from character_findings(file.path, text, code=role == "code")
    if role == "code":
        yield from obfuscation_findings(file.path, data)
    if role == "prose":
        taken = scan_limit.take_prose(file.path, text)
        yield from prose_findings(file.path, taken)
        if len(taken) < len(text):
            yield from _plain_signs(file, told="warning")


def _as_utf8(data: bytes) -> bytes:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def _plain_signs(file: PackageFile, *, told: str) -> Iterator[ScanFinding]:
    found = _PLAIN.search(file.data)
    if found is not None:
        message = "A sign of code or orders in a file that the scan did not read completely."
        yield at(told, "plain-sign", file.path, file.data, found.span(), message)  # type: ignore[arg-type]


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
"""Matches names in a pickle before a call of them, in old and new protocols."""


def file_findings(file: PackageFile, kind: Kind) -> Iterator[ScanFinding]:
    """Yield the findings about `file`, which is not read as text."""
    suffix = suffix_of(file.path)
    size = f"{len(file.data):,} bytes"

    def found(severity: Severity, code: str, message: str) -> ScanFinding:
        return ScanFinding(severity, code, file.path, 0, message)

    if kind.group == "program":
        yield found("danger", "program", f"{kind.name}, {size}: reviewers cannot read it.")
    elif kind.group == "bytecode":
        yield found("warning", "bytecode", f"{kind.name}, {size}: reviewers cannot read it.")
    elif kind.group == "archive":
        secret = (
            kind.name == "zip archive" and bool(file.data[6] & 1) if len(file.data) > 6 else False
        )
        yield found(
            "danger" if secret else "warning",
            "archive",
            f"{kind.name}{' with a password' if secret else ''}, {size}: its contents are not "
            "examined.",
        )
    elif kind.group == "data":
        severity: Severity = "note" if kind.suffixes else "warning"
        yield found(severity, "binary", f"{kind.name}, {size}.")
    elif kind.group in _TOLD:
        yield found("note", "binary", f"{kind.name}, {size}.")
    if kind is OFFICE and b"vbaProject.bin" in file.data:
        yield found("danger", "macro", "An office file with a macro, which runs when it is opened.")
    if kind.name == "PDF" and (b"/JavaScript" in file.data or b"/Launch" in file.data):
        yield found("warning", "macro", "A PDF that runs code when it is opened.")
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

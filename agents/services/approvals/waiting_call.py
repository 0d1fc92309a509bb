"""The display of a pending call, with the present content of its file.

The caller checks that the person may decide the request. The files belong to the agent, which may
have created links: only the backends of the file tools open them.
"""

from __future__ import annotations

import hashlib

from agents.models import ApprovalRequest
from agents.review import Review, Unreadable, call_review
from agents.review.call import NOTHING_IMPORTED, PATH
from agents.review.parts import NOT_LOOKED_UP
from agents.services.errors import Conflict
from agents.services.files.seen_files import DatabaseSeenFiles
from agents.services.files.thread_files import in_transaction, readable_files
from agents.services.placement import machine_name
from agents.settings import MachineSettings
from agents.spec import AgentSpec
from agents.toolkits import FILES_MARK
from sandbox.backends import FileBackend
from sandbox.backends.protocol import ABSENT
from sandbox.backends.window import require_text
from sandbox.errors import (
    FileAccessFailed,
    FileError,
    FileMissing,
    FileTooLarge,
    NotText,
    PathRefused,
    ReadOnlyPath,
)
from sandbox.importable import Importable, importable_files
from sandbox.paths import READ_ONLY_AREAS, SANDBOX_ROOT, WORKING_DIR, is_within, normalise

MAX_BYTES = 1_000_000
MAX_LINES = 10_000
"""The limit of a file in a comparison. An agent could fill a file with line breaks, and each
becomes a row of a page."""
_WRITING = frozenset({"write_file", "edit_file"})


def review_of(request: ApprovalRequest) -> Review:
    """Return the tool call of `request` compared with the present workspace. Changes nothing."""
    spec = AgentSpec.model_validate(request.run.spec)
    before = current_text(request)
    return call_review(
        request.tool,
        request.input,
        before,
        time_limit=spec.command_timeout,
        network=_network(spec),
        refusal=_refusal(request, before),
        imports=_imports(request),
    )


def current_text(request: ApprovalRequest) -> str | Unreadable | None:
    """Return the present content of the file that a pending call would write.

    None if the file does not exist. An `Unreadable` with the reason if the file cannot be shown,
    for example because it is too large; `NOT_LOOKED_UP` for a call that writes no file.
    """
    path = _path(request)
    if path is None:
        return NOT_LOOKED_UP
    if _is_programs(request, path):
        return Unreadable(
            "The file is in a storage of the Python program, which cannot be read here."
        )
    if isinstance(files := _files(request), Unreadable):
        return files
    try:
        data = files.read_bytes(path, MAX_BYTES)
        require_text(data, len(data))
        text = data.decode()
    except FileMissing:
        return None
    except FileTooLarge:
        return Unreadable(f"The file has more than {MAX_BYTES:,} bytes.")
    except NotText:
        return Unreadable("The file is no text.")
    except FileAccessFailed as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None  # the workspace directory does not exist yet
        return Unreadable(f"The file cannot be read: {error}")
    except FileError as error:
        return Unreadable(f"The file cannot be read: {error}")
    if text.count("\n") > MAX_LINES:
        return Unreadable(f"The file has more than {MAX_LINES:,} lines.")
    return text


def _imports(request: ApprovalRequest) -> Importable | Unreadable:
    """Return the files that pending Python code can import."""
    code = request.input.get("code") if isinstance(request.input, dict) else None
    if request.tool != "execute_python" or not isinstance(code, str):
        return NOTHING_IMPORTED
    if isinstance(files := _files(request), Unreadable):
        return files
    try:
        return importable_files(code, files, WORKING_DIR)
    except FileAccessFailed as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return NOTHING_IMPORTED  # the workspace directory does not exist yet
        return Unreadable(f"The workspace cannot be read: {error}")
    except FileError as error:
        return Unreadable(f"The workspace cannot be read: {error}")


def _path(request: ApprovalRequest) -> str | None:
    if request.tool not in _WRITING or not isinstance(request.input, dict):
        return None
    path = next((request.input[name] for name in PATH if name in request.input), None)
    return path if isinstance(path, str) else None


def _files(request: ApprovalRequest) -> FileBackend | Unreadable:
    thread = request.run.thread
    in_workspace = _in_workspace(request)
    if in_workspace and not MachineSettings.now().HOST and thread.host != machine_name():
        return Unreadable(f"The workspace is on another machine, {thread.host}.")
    try:
        return readable_files(thread, in_workspace=in_workspace)
    except Conflict as error:  # another host has the files
        return Unreadable(error.message)


def _is_programs(request: ApprovalRequest, path: str) -> bool:
    """Return whether the file may be one of the program that started the run."""
    if FILES_MARK not in request.run.spec.get("toolkit", ""):
        return False
    try:
        found = normalise(path, WORKING_DIR if _in_workspace(request) else "/")
    except PathRefused:
        return True
    return not is_within(found, SANDBOX_ROOT)


def _in_workspace(request: ApprovalRequest) -> bool:
    return bool(request.run.spec["sandbox"])


def _refusal(request: ApprovalRequest, before: str | Unreadable | None) -> str:
    """Return why the tool would refuse to write there at this time, or ""."""
    path = _path(request)
    if path is None or _is_programs(request, path):
        return ""
    if isinstance(files := _files(request), Unreadable):
        return ""
    try:
        path = files.resolve(path)
        read_only = [f"{SANDBOX_ROOT}/{area}" for area in READ_ONLY_AREAS]
        if _in_workspace(request) and any(is_within(path, area) for area in read_only):
            return "the path is read-only."
        found = files.stat(path)
    except FileAccessFailed:
        return ""
    except FileError as error:
        return error.problem
    if found is not None and found.type != "file":
        return f"there is a {found.type}, and only files are written."
    return _changed_since(request, path, before)


def _changed_since(request: ApprovalRequest, path: str, before: str | Unreadable | None) -> str:
    """Return a problem if the agent has seen other content: then the tools refuse to write."""
    if isinstance(before, Unreadable):
        return ""
    run = request.run
    seen = DatabaseSeenFiles(run.thread_id, run.pk, in_transaction, _refuse).get(path)
    now = ABSENT if before is None else hashlib.sha256(before.encode()).hexdigest()
    return "" if seen in (None, now) else "the file has changed since the agent saw it."


def _refuse() -> None:
    raise ReadOnlyPath("looking at a request writes nothing.")


def _network(spec: AgentSpec) -> str:
    match spec.network:
        case "full":
            return "public internet addresses"
        case "allowlist" if spec.allowed_hosts:
            return f"only {', '.join(spec.allowed_hosts)}"
        case _:
            return "none"

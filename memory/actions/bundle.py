"""Export of an agent's memory to a folder, and import from one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from agents.models import Agent
from agents.services.agent_definitions.prompt_import import PromptPlan, plan_prompt, store_prompt
from agents.services.errors import InvalidRequest
from agents.services.findings import FileFinding, findings_in, require_accepted
from memory.actions.changes import check_may_change
from memory.actions.edits import change_memory, check_edited_contents
from memory.edits import size_warnings
from memory.errors import MemoryRefused
from memory.folder import read_folder, write_folder
from memory.folders import Change
from memory.limits import size_of
from memory.models import Operation
from memory.paths import READ_ONLY
from memory.queries.files import list_memory_entries, memory_bytes, memory_state


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file of the folder that differs from the memory. `before` is None for a new file."""

    path: str
    content: str
    before: str | None
    base_revision: int


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The changes that an import would make to the memory.

    Attributes:
        same: Paths whose content is the same in both places.
        kept: Paths that are only in the memory. The import does not change them.
        ignored: Names at the top of the folder that do not belong to a memory.
        prompt: None if the folder has no prompt, if the prompt is unchanged, or if the caller did
            not request it.
        findings: The scanner's findings in the new texts.
        warnings: Sentences about the size of the memory after the import.
    """

    files: list[ImportedFile]
    same: list[str]
    kept: list[str]
    ignored: list[str]
    prompt: PromptPlan | None
    findings: list[FileFinding]
    warnings: list[str]


def export_memory(agent_id: str, directory: Path) -> list[str]:
    """Write the whole memory into a new directory and return the paths of its files.

    The memory includes AGENTS.md and tools.json, and excludes `me/`. After an error, no file is
    written.

    Raises:
        InvalidRequest: `directory` is a link, has content, or has no parent directory.
        OSError: Writing fails.
    """
    with transaction.atomic():
        files: dict[str, str] = {}
        for entry in list_memory_entries(agent_id):
            content = memory_state(agent_id, entry.path).content
            if content is not None:
                files[entry.path] = content
    try:
        write_folder(directory, files)
    except MemoryRefused as problem:
        raise InvalidRequest(str(problem)) from None
    return list(files)


def plan_import(agent: Agent, directory: Path, *, with_prompt: bool = False) -> ImportPlan:
    """Return the changes that an import of `directory` would make.

    The caller checks beforehand that the person may read the agent's memory.

    Raises:
        InvalidRequest: The folder is invalid, or one of the changes is impossible.
    """
    try:
        folder = read_folder(directory)
    except MemoryRefused as problem:
        raise InvalidRequest(str(problem)) from None
    files: list[ImportedFile] = []
    same: list[str] = []
    for path, content in folder.files.items():
        state = memory_state(agent.pk, path)
        if state.content == content:
            same.append(path)
            continue
        files.append(ImportedFile(path, content, state.content, state.revision))
    check_edited_contents(agent.pk, {file.path: file.content for file in files})
    prompt = None
    if with_prompt and folder.prompt is not None and folder.prompt != agent.system_prompt:
        prompt = plan_prompt(agent, folder.prompt)
    existing = [entry.path for entry in list_memory_entries(agent.pk)]
    return ImportPlan(
        files=files,
        same=same,
        kept=[path for path in existing if path not in folder.files and path not in READ_ONLY],
        ignored=folder.ignored,
        prompt=prompt,
        findings=[
            *findings_in({file.path: file.content for file in files}),
            *(prompt.findings if prompt else []),
        ],
        warnings=size_warnings(_bytes_after(agent.pk, files)),
    )


@transaction.atomic
def carry_out_import(
    agent: Agent, plan: ImportPlan, *, by: AbstractBaseUser, accept_findings: bool = False
) -> dict[str, int]:
    """Store all changes of `plan`, or none, and return the new revisions by path.

    Raises:
        NotAllowed: `by` may not change the memory.
        InvalidRequest: The scanner has findings, and `accept_findings` is False (code `findings`);
            or a change is invalid.
        Conflict: A file has changed since the plan was made (code `stale`).
    """
    check_may_change(agent, by)
    require_accepted(plan.findings, accept_findings)
    revisions = {
        file.path: change_memory(
            agent.pk,
            Change(
                path=file.path,
                operation=Operation.IMPORT,
                content=file.content,
                base_revision=file.base_revision,
                source="import",
                by_id=by.pk,
                reason="Imported from a folder.",
            ),
        )
        for file in plan.files
    }
    if plan.prompt is not None:
        store_prompt(agent.pk, plan.prompt, by=by, accept_findings=accept_findings)
    return revisions


def _bytes_after(agent_id: str, files: list[ImportedFile]) -> int:
    """Return the total size of the knowledge files after the import, in bytes of UTF-8."""
    total = memory_bytes(agent_id)
    for file in files:
        if file.path.startswith("knowledge/"):
            total += size_of(file.content) - size_of(file.before or "")
    return total

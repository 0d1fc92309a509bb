"""Import of a project's AGENTS.md files as an agent's prompt."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin
from django.db import transaction

from agents.models import Agent
from agents.prompt_variables import escaped
from agents.services.agent_definitions.actions import save_agent
from agents.services.errors import Conflict, InvalidRequest, NotAllowed
from agents.services.findings import FileFinding, findings_in, require_accepted
from sandbox.backends import TreeBackend
from sandbox.errors import FileError, FileTooLarge

PROMPT = "AGENTS.md"
MAX_STORED = 100 * 1024
"""The size limit of a prompt, in bytes."""
MAX_BYTES = 64 * 1024
"""The size limit of all files of a project together."""


@dataclass(frozen=True, slots=True)
class AgentsFile:
    """One file of instructions. `path` is relative to the repository, for example web/AGENTS.md."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """The present and the new prompt, and the scanner's findings in the new one."""

    before: str
    after: str
    findings: list[FileFinding]


def read_agents_files(location: Path, name: str = PROMPT) -> list[AgentsFile]:
    """Return the files called `name` that apply to the directory `location`, the top one first.

    The search goes from the top of the repository down to `location`. Without a repository it
    covers only `location`. If `location` is a file, the result is this file. Can be empty. Raises
    `InvalidRequest` if a file is not text or links to the outside, or if all together exceed
    `MAX_BYTES`.
    """
    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise InvalidRequest("The name is that of a file, without directories: AGENTS.md.")
    try:
        location = location.resolve(strict=True) if location.is_dir() else location.absolute()
        if location.is_dir():
            root = _repository(location)
            below = location.relative_to(root).parts
            directories = [Path(*below[:end]) for end in range(len(below) + 1)]
        elif location.is_file():
            root, name, directories = location.parent, location.name, [Path()]
        else:
            raise InvalidRequest(f"There is no file or directory {location}.")
        return _read(TreeBackend(root), [str(directory / name) for directory in directories])
    except OSError as problem:
        raise InvalidRequest(f"{location} cannot be read: {problem.strerror}.") from None


def prompt_of(files: Sequence[AgentsFile]) -> str:
    """Return all files as one prompt, each below a heading with its path.

    The files were not written for Vel: text that looks like a variable of a prompt is escaped.
    """
    return escaped("\n\n".join(f"# From {file.path}\n\n{file.content.strip()}" for file in files))


def plan_prompt(agent: Agent, prompt: str) -> PromptPlan:
    """Return the change that storing `prompt` would make.

    Raises `InvalidRequest` if the prompt is too long, or contains NULs or lone surrogates.
    """
    if "\x00" in prompt:
        raise InvalidRequest("The prompt holds a NUL character, which no prompt may.")
    try:
        size = len(prompt.encode())
    except UnicodeEncodeError:
        raise InvalidRequest("The prompt holds half a character (a lone surrogate).") from None
    if size > MAX_STORED:
        raise InvalidRequest(
            f"The prompt has {size:,} bytes and may have {MAX_STORED:,}: make it shorter."
        )
    return PromptPlan(agent.system_prompt, prompt, findings_in({PROMPT: prompt}))


@transaction.atomic
def store_prompt(
    agent_id: str, plan: PromptPlan, *, by: AbstractBaseUser, accept_findings: bool = False
) -> Agent:
    """Store the plan's prompt, as a new version of the agent.

    Raises `NotAllowed`, `InvalidRequest` (code `findings`) if findings are not accepted, and
    `Conflict` (code `stale`) if the prompt has changed since the plan was made.
    """
    agent = Agent.objects.select_for_update().get(pk=agent_id)
    check_may_change_prompt(agent, by)
    require_accepted(plan.findings, accept_findings)
    if agent.system_prompt != plan.before:
        raise Conflict("The prompt has changed. Reload it and try again.", code="stale")
    agent.system_prompt = plan.after
    return save_agent(agent, by_id=by.pk)


def check_may_change_prompt(agent: Agent, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed` unless `by` owns `agent` or may change agents.

    The right to approve changes of its memory does not include its prompt.
    """
    if agent.owner_id == by.pk:
        return
    if isinstance(by, PermissionsMixin) and by.has_perm("agents.change_agent"):
        return
    raise NotAllowed(
        f"The prompt of {agent.name} is changed by its owner, or by people with the permission to "
        "change agents."
    )


def _repository(directory: Path) -> Path:
    """Return the top of the repository that contains `directory`, else `directory` itself.

    The search stays in directories of one owner that not everybody can write: in a shared place
    such as /tmp anybody could put a repository, with instructions, above other people's files.
    """
    owner = directory.stat().st_uid
    for above in (directory, *directory.parents):
        found = above.stat()
        if found.st_uid != owner or (above != directory and found.st_mode & stat.S_IWOTH):
            break
        if (above / ".git").exists():
            return above
    return directory


def _read(tree: TreeBackend, paths: Sequence[str]) -> list[AgentsFile]:
    files: list[AgentsFile] = []
    left = MAX_BYTES
    for path in paths:
        try:
            if tree.stat(f"/{path}") is None:
                continue
            data = tree.read_bytes(f"/{path}", left)
        except FileTooLarge:
            raise InvalidRequest(
                f"{path}: a prompt of over {MAX_BYTES:,} bytes is not taken; make it shorter."
            ) from None
        except FileError as problem:
            raise InvalidRequest(str(problem)) from None
        left -= len(data)
        if not path.isprintable():
            raise InvalidRequest(f"{path!r}: the path has characters that cannot be shown.")
        try:
            files.append(AgentsFile(path, data.decode("utf-8")))
        except UnicodeDecodeError:
            raise InvalidRequest(f"{path} is not UTF-8 text.") from None
    return files

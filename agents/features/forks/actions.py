"""Start a new thread with the conversation and the files of a step of another thread.

Files are copied before the transaction that creates the rows, since copying can be slow. A process
that is killed in between leaves a thread without rows, which is not visible to anyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import Max, Sum

from agents.disk_space import forget_room
from agents.features.forks.files import (
    NONE,
    NOW,
    THEN,
    CopiedFiles,
    copy_directories,
    copy_rows,
    remove_directories,
    state_after,
)
from agents.features.forks.history import copy_history
from agents.features.forks.settings import ForkSettings
from agents.models import POOL, Agent, AgentVersion, Message, Run, Thread
from agents.selectors.visible import agents_for
from agents.services.disk_reserve import disk_full_refused, require_room
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from agents.services.files.thread_files import has_workspace
from agents.services.files.workspaces import assign_sandbox_uid
from agents.services.placement import home_of_new
from agents.services.runs.message_sources import message_sources
from agents.services.runs.start import RunRequest, check_create_run, create_run
from agents.states import RunStatus
from sandbox.errors import SandboxError

CHANGE_ALL = ("agents.change_agent", "agents.configure_sandbox", "agents.configure_approval")


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """A person's request for a fork.

    `step` is a turn of the run, 0 for its message alone, None for its last turn. With a `message`,
    a run starts in the new thread, with the agent version of the old run or with the present
    version. `files` is one of `then`, `now` and `none`. `thread_key` is as `RunRequest.key`.
    """

    step: int | None = None
    message: str | None = None
    thread_key: str | None = None
    present_version: bool = False
    files: str = THEN


@dataclass(slots=True)
class Fork:
    """A new thread. `run` is the run of the request's message, or None."""

    source: Run
    step: int
    request: ForkRequest
    version: AgentVersion | None
    thread: Thread
    run: Run | None = None
    files: CopiedFiles = field(default_factory=CopiedFiles)
    has_rows: bool = False


@contextmanager
def prepared_fork(run: Run, request: ForkRequest, *, by: AbstractBaseUser) -> Iterator[Fork]:
    """Yield a fork with its files for `complete_fork`; an incomplete fork is removed at the end.

    Raises `NotAllowed` if `by` does not own the run, `NotFound` for an agent that `by` may not use,
    `InvalidRequest` for an unknown step or an invalid key, and `NoSpace`. Raises `Conflict` for a
    subagent's run, a pending run, a run with a blocked message, a key in use, files of a step
    without a snapshot, files that cannot be copied, an agent that has changed since, or a person
    without quota for copies.
    """
    agent = _check_may_fork(run, by)
    last = Message.objects.filter(run=run).aggregate(last=Max("turn"))["last"] or 0
    step = last if request.step is None else request.step
    if not 0 <= step <= last:
        raise InvalidRequest(f"step: The run has the steps 0 to {last}.")
    version = _version_for(run, agent, request, by)
    in_directories = has_workspace(run.thread)
    state = state_after(run, step) if request.files == THEN else None
    if request.message is not None:
        check_create_run(RunRequest(agent=agent.slug, message=request.message))
    require_room()
    if request.files != NONE:
        check_room_for_fork(run.owner_id)
    fork = Fork(run, step, request, version, _make_thread(run, step, request))
    is_complete = False
    try:
        if in_directories and request.files != NONE:
            fork.files = _copied(fork, state)
        yield fork
        is_complete = fork.has_rows
    finally:
        if not is_complete:
            Thread.objects.filter(pk=fork.thread.pk).delete()
            remove_directories(fork.thread.pk)


@transaction.atomic
def complete_fork(fork: Fork) -> Fork:
    """Write the conversation and start the requested run, all in one transaction.

    Raises `Conflict` if the owner's forks would have copied too much, and `NotFound` if the
    conversation has been erased.
    """
    request, thread = fork.request, fork.thread
    locked = Thread.objects.select_for_update(no_key=True).filter(pk=fork.source.thread_id)
    if (source := locked.first()) is None:
        raise NotFound("The conversation has been erased.", code="unknown_thread")
    thread.forked_sources = sorted(message_sources(source))
    thread.save(update_fields=["forked_sources"])
    copy_history(fork.source, fork.step, thread, uploads=request.files != NONE)
    if request.files in (THEN, NOW) and not has_workspace(fork.source.thread):
        fork.files = copy_rows(fork.source.thread, thread)
    count_copied(thread, fork.files.size)
    if request.message is not None:
        message = RunRequest(
            agent=thread.agent.slug,
            message=request.message,
            thread=thread.pk,
            version=fork.version,
        )
        fork.run = create_run(message, owner=thread.owner).run
    fork.has_rows = True
    return fork


def _check_may_fork(run: Run, by: AbstractBaseUser) -> Agent:
    if run.owner_id != by.pk:
        # Its files belong to its owner alone.
        raise NotAllowed("Only the owner of a run can fork it.")
    if run.parent_id is not None:
        raise Conflict(
            "A subagent's run cannot be forked. Fork the run that started it.", code="subagent"
        )
    if run.status == RunStatus.PENDING:
        raise Conflict("The run has not started. Fork the run before it.", code="pending")
    if run.message_refused:
        raise Conflict(
            "The message of this run was blocked. Fork the run before it.",
            code="message_blocked",
        )
    agent = agents_for(by).filter(pk=run.thread.agent_id).first()
    if agent is None:
        raise NotFound("You no longer have access to this agent.", code="unknown_agent")
    return agent


def _version_for(
    run: Run, agent: Agent, request: ForkRequest, by: AbstractBaseUser
) -> AgentVersion | None:
    """Return the agent version for the new run, or None for the present version.

    Only people who may change all of the agent get an older, possibly more permissive version:
    restrictions by an operator apply to every new run.
    """
    if request.message is None or request.present_version:
        return None
    latest = agent.versions.order_by("-number").values_list("pk", flat=True).first()
    if run.agent_version_id != latest and not by.has_perms(CHANGE_ALL):  # type: ignore[attr-defined]
        raise Conflict(
            "The agent has changed since this run, and only users who can change it can run an "
            "older version. Set `version` to `current`.",
            code="agent_changed",
        )
    return run.agent_version


def _make_thread(run: Run, step: int, request: ForkRequest) -> Thread:
    source = run.thread
    if request.thread_key is not None and not 0 < len(request.thread_key) <= 200:
        raise InvalidRequest("thread_key: The session id must have 1 to 200 characters.")
    try:
        with transaction.atomic():
            thread = Thread.objects.create(
                key=request.thread_key,
                agent_id=source.agent_id,
                owner_id=source.owner_id,
                forked_from=run,
                forked_turn=step,
                title=source.title,
                host=home_of_new(POOL, ""),
                skill_directories=source.skill_directories,
                time_zone=source.time_zone,
                prompt_values=source.prompt_values,
            )
            assign_sandbox_uid(thread)
            return thread
    except IntegrityError:
        raise Conflict(
            "You have another thread with this key. Choose another key.", code="key_taken"
        ) from None


def _copied(fork: Fork, state: str | None) -> CopiedFiles:
    try:
        with disk_full_refused():
            copied = copy_directories(fork.source.thread, fork.thread, state)
        forget_room()
        require_room()
        return copied
    except (OSError, SandboxError) as error:
        raise Conflict(f"The files could not be copied: {error}", code="fork_failed") from error


def check_room_for_fork(owner_id: int) -> None:
    """Raise `Conflict` if a person's forks have used their quota of copied bytes.

    An early check before files are copied; `count_copied` decides.
    """
    limit = ForkSettings.now().FORK_BYTES
    if limit and _copied_by(owner_id) >= limit:
        raise _too_much()


def count_copied(thread: Thread, size: int) -> None:
    """Record that the fork has copied `size` bytes. Raises `Conflict` if they exceed the quota.

    In the transaction of the fork; it locks the user, so forks of a person are counted in turn.
    """
    limit = ForkSettings.now().FORK_BYTES
    get_user_model().objects.select_for_update(no_key=True).get(pk=thread.owner_id)
    if limit and _copied_by(thread.owner_id) + size > limit:
        raise _too_much()
    Thread.objects.filter(pk=thread.pk).update(copied_bytes=size)


def _copied_by(owner_id: int) -> int:
    forks = Thread.objects.filter(owner=owner_id, copied_bytes__gt=0)
    return forks.aggregate(size=Sum("copied_bytes"))["size"] or 0


def _too_much() -> Conflict:
    limit = ForkSettings.now().FORK_BYTES
    return Conflict(
        f"Your forks have reached the limit of {limit:,} bytes of copied files. Set `files` to "
        "`none`, or ask the operator to remove old workspaces (vel workspaces prune --apply).",
        code="fork_quota",
    )

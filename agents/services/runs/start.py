"""Starting runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import Max

from agents.events.append import dump
from agents.kernel import row_hooks
from agents.models import (
    POOL,
    Agent,
    AgentVersion,
    IdempotencyKey,
    Message,
    MessageRole,
    RemoteTrace,
    Run,
    RunClock,
    Thread,
    Upload,
)
from agents.models.message import PERSON
from agents.prompt_variables import Value
from agents.selectors.visible import agent_named, agents_for, threads_for
from agents.services.agent_definitions.actions import current_version, schema_text
from agents.services.agent_definitions.prompt_values import (
    check_context,
    check_needed,
    check_same_context,
    values_at_start,
)
from agents.services.disk_reserve import require_room
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.placement import home_of_new, take_home
from agents.services.runs.model_choice import spec_with
from agents.services.runs.session_files import check_sandbox, check_working_directory, file_rules
from agents.services.runs.wake import enqueue_run
from agents.services.threads import first_words
from agents.settings import MessageSettings
from agents.states import (
    ACTIVE_RUNS,
    RunStatus,
)
from agents.telemetry.ids import format_traceparent, parse_traceparent
from agents.telemetry.process import traces_wanted
from sandbox.own_directory.rules import FileRules


@dataclass(frozen=True)
class RunRequest:
    """A person's request for a run.

    `agent` is an id or a slug. `thread` is the id of one of the person's threads; `key` is a
    session id that the caller chose: it continues the thread with this key or starts one. With
    `queue`, a message to a busy thread waits for its turn instead of being refused.

    `draft` is the definition of this run instead of that of the agent's version. The caller has
    checked it (`draft_spec`): it never comes from the network. `model` is one of the models that
    the definition names, as `openai:gpt-6.2-sol`; empty: the agent's own. `output_schema` is the
    form of the answer to this message only, a JSON Schema. `context` are the values of
    `{{context.NAME}}` in prompts, given when a thread starts. `version` is the agent's version;
    None: the present one. `resumed_from` is the run that it continues. `attached` are fingerprints
    of its files: another file is another request. `trigger` is the id of the trigger that starts
    it, without a person. `traceparent` is the caller's span (W3C's header).

    `workspace_path` and `skill_directories` (absolute paths; None keeps those of a thread) are for
    callers on this machine only, never for the network. A thread keeps its directory: another
    `workspace_path` is refused. With `workspace_is_default` the path is a default, and only a new
    thread gets it. `workspace_rules` limit changes in the directory `workspace_path`; None keeps
    those of a thread.
    """

    agent: str
    message: str
    thread: str | None = None
    key: str | None = None
    queue: bool = False
    executor: str = POOL
    source: str = "api"
    model: str = ""
    draft: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    context: Mapping[str, Value] | None = None
    version: AgentVersion | None = None
    resumed_from: Run | None = None
    attached: tuple[str, ...] = ()
    traceparent: str = ""
    trigger: str | None = None
    workspace_path: str = ""
    workspace_is_default: bool = False
    workspace_rules: FileRules | None = None
    skill_directories: tuple[str, ...] | None = None


@dataclass(frozen=True)
class CreatedRun:
    """A run. `created` is False if an idempotency key refers to an existing run."""

    run: Run
    created: bool


def create_run(
    request: RunRequest, *, owner: AbstractBaseUser, idempotency_key: str | None = None
) -> CreatedRun:
    """Store the message and a run that will answer it, and give the run to its executor.

    Raises:
        InvalidRequest: The message, a key, the context, the output schema or a directory is
            invalid, or the agent cannot use the model.
        NotFound: The agent or the thread is unavailable to `owner`.
        Conflict: The thread is busy, belongs to another agent, or has other files or another
            context; or `idempotency_key` was used with another request.
        NoSpace: The disk is full.
    """
    check_create_run(request)
    body_hash = _hash_of(request)
    if idempotency_key is not None and not 0 < len(idempotency_key) <= 200:
        raise InvalidRequest("The idempotency key must have 1 to 200 characters.")
    try:
        with transaction.atomic():
            known = _known_key(owner, idempotency_key, body_hash)
            if known is not None:
                return CreatedRun(known, created=False)
            require_room()
            run = _do_create_run(request, owner)
            if idempotency_key is not None:
                IdempotencyKey.objects.create(
                    owner_id=owner.pk, key=idempotency_key, body_hash=body_hash, run=run
                )
            return CreatedRun(run, created=True)
    except IntegrityError:
        # Another request for the thread or with the key was faster; its rows are stored now.
        known = _known_key(owner, idempotency_key, body_hash)
        if known is not None:
            return CreatedRun(known, created=False)
        raise Conflict(
            "The thread was taken by another run at the same moment: try again.",
            code="thread_busy",
        ) from None


def _hash_of(request: RunRequest) -> str:
    body: list[Any] = [request.agent, request.message, request.thread, request.key, request.queue]
    if request.output_schema is not None or request.context:
        body += [request.output_schema, dict(request.context or {})]
    body += request.attached
    if request.model:
        body.append({"model": request.model})
    if request.draft is not None:
        body.append({"draft": request.draft})
    return hashlib.sha256(dump(body).encode()).hexdigest()


def check_create_run(request: RunRequest) -> None:
    """Raise `InvalidRequest` for a part of the request that is invalid without looking at rows."""
    limit = MessageSettings.now().MESSAGE_BYTES
    if not request.message.strip():
        raise InvalidRequest("The message is empty. Describe the task for the agent.")
    size = len(request.message.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise InvalidRequest(
            f"Expected a message of at most {limit:,} bytes, got {size:,}. Put long material into "
            "a file in the workspace and name the file.",
            code="message_too_long",
        )
    if "\x00" in request.message or any("\ud800" <= char <= "\udfff" for char in request.message):
        raise InvalidRequest("The message holds a NUL or a lone surrogate: send text in UTF-8.")
    if request.thread and request.key:
        raise InvalidRequest("Name a thread by its id or by your own key, not by both.")
    if request.key is not None and not 0 < len(request.key) <= 200:
        raise InvalidRequest("The session id must have 1 to 200 characters.")
    check_context(request.context or {})
    schema_text(request.output_schema)


def _known_key(owner: AbstractBaseUser, key: str | None, body_hash: str) -> Run | None:
    if key is None:
        return None
    row = IdempotencyKey.objects.select_related("run").filter(owner_id=owner.pk, key=key).first()
    if row is None:
        return None
    if row.body_hash != body_hash or row.run is None:
        raise Conflict(
            "This idempotency key was used with another body: use a new key.",
            code="idempotency_mismatch",
        )
    return row.run


def _do_create_run(request: RunRequest, owner: AbstractBaseUser) -> Run:
    agent = agent_named(agents_for(owner), request.agent)
    if agent is None:
        raise NotFound(
            f"There is no agent {request.agent!r} that you may use.", code="unknown_agent"
        )
    version = request.version or current_version(agent)
    found = _thread_to_go_on_with(request, agent, version, owner)
    thread = found or _new_thread(request, agent, owner)
    # A new thread has no runs and no uploads.
    busy = (
        found is not None
        and Run.objects.filter(
            thread=thread, parent=None, status__in=[*ACTIVE_RUNS, RunStatus.PENDING]
        ).exists()
    )
    if busy and not request.queue:
        raise Conflict(
            "The thread is busy with an earlier message: wait for its end, cancel it, or ask for "
            "this message to be queued.",
            code="thread_busy",
        )
    spec = request.draft or version.spec
    if request.model:
        spec = spec_with(spec, request.model)
    check_needed(spec, thread)
    if request.output_schema is not None and spec.get("output_schema"):
        raise InvalidRequest(
            f"The agent {request.agent!r} has its own output schema. Remove output_schema.",
            code="has_output_schema",
        )
    number = 1
    if found is not None:
        number += Run.objects.filter(thread=thread).aggregate(last=Max("number"))["last"] or 0
    run = Run.objects.create(
        thread=thread,
        number=number,
        agent_version=version,
        subagent_spec=None if spec is version.spec else spec,
        owner_id=owner.pk,
        status=RunStatus.PENDING if busy else RunStatus.QUEUED,
        executor=request.executor,
        source=request.source,
        trigger=request.trigger,
        resumed_from=request.resumed_from,
        output_schema=request.output_schema,
    )
    RunClock.objects.create(run=run)
    note_remote_trace(run, request.traceparent)
    Message.objects.create(
        run=run,
        turn=0,
        author=PERSON,
        role=MessageRole.USER,
        content=dump([{"type": "text", "text": request.message}]),
    )
    if found is not None and Upload.objects.filter(thread=thread, run=None).update(run=run):
        Run.objects.filter(pk=run.pk).update(has_uploads=True)
    if not busy:
        enqueue_run(run)
    return run


def _refuse_subagents_thread(thread_id: str, owner: AbstractBaseUser) -> None:
    if Thread.objects.filter(pk=thread_id, owner=owner.pk, root__isnull=False).exists():
        raise Conflict(
            "This thread belongs to a subagent. Send the message to the run that started it.",
            code="subagent",
        )


def _thread_to_go_on_with(
    request: RunRequest, agent: Agent, version: AgentVersion, owner: AbstractBaseUser
) -> Thread | None:
    """Return the requested thread, locked; None for a new one."""
    mine = threads_for(owner).select_for_update()
    thread = None
    if request.thread:
        thread = mine.filter(pk=request.thread).first()
        if thread is None:
            _refuse_subagents_thread(request.thread, owner)
            raise NotFound(f"You have no thread {request.thread!r}.", code="unknown_thread")
    elif request.key:
        thread = mine.filter(key=request.key).first()
    if thread is not None:
        if thread.agent_id != agent.pk:
            raise Conflict(
                f"The thread belongs to the agent {thread.agent.slug!r}. Start a new thread.",
                code="other_agent",
            )
        if not request.workspace_is_default:
            check_working_directory(thread, request.workspace_path)
        if request.executor != POOL:
            check_sandbox(thread, bool(version.spec["sandbox"]))
        if request.skill_directories is not None:
            rules = request.workspace_rules or file_rules(thread)
            _check_directories(request.skill_directories, thread.workspace_path, rules)
            thread.skill_directories = list(request.skill_directories)
            thread.save(update_fields=["skill_directories"])
        if request.workspace_rules is not None:
            thread.workspace_rules = _stored_rules(request.workspace_rules)
            thread.save(update_fields=["workspace_rules"])
        check_same_context(thread, check_context(request.context or {}))
        if request.executor != POOL:
            take_home(thread)
    return thread


def _stored_rules(rules: FileRules) -> dict[str, list[str]]:
    """Return the JSON of the row, empty for the default."""
    return {name: list(patterns) for name, patterns in asdict(rules).items() if patterns}


def _check_directories(directories: Sequence[str], workspace_path: str, rules: FileRules) -> None:
    checked = row_hooks.check_directories(directories, workspace_path, rules.protects)
    if not checked and directories:
        raise InvalidRequest(
            "skill_directories: no installed feature reads skills. Leave the directories out, or "
            "install the feature skills_app."
        )


def _new_thread(request: RunRequest, agent: Agent, owner: AbstractBaseUser) -> Thread:
    rules = request.workspace_rules or FileRules()
    _check_directories(request.skill_directories or (), request.workspace_path, rules)
    thread = Thread(
        agent=agent,
        owner_id=owner.pk,
        key=request.key or None,
        title=first_words(request.message),
        host=home_of_new(request.executor, request.workspace_path),
        workspace_path=request.workspace_path,
        workspace_rules=_stored_rules(rules),
        skill_directories=list(request.skill_directories or ()),
    )
    context = check_context(request.context or {})
    thread.prompt_values = values_at_start(thread, owner, agent, context)
    thread.save(force_insert=True)
    return thread


def note_remote_trace(run: Run, header: str) -> None:
    """Store the remote span that requested `run`, if traces are on and the header is valid."""
    if not header or not traces_wanted():
        return
    parent = parse_traceparent(header)
    if parent is not None:
        RemoteTrace.objects.create(run=run, traceparent=format_traceparent(parent))

"""Loading of a run's state from its rows, into a session for its driver.

The first load of a run defines the parts of features, and later loads read them from rows. The
prompt belongs to an epoch of the thread, and a later load or turn can start a new epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents.engine.files.attachments import look_at_uploads
from agents.engine.files.workspaces import ThreadFiles
from agents.engine.gate import installed_gate
from agents.engine.model_call import output_format_of
from agents.engine.process.heartbeat import RunHandle
from agents.engine.process.resources import Resources
from agents.engine.prompt.conversation import conversation_of
from agents.engine.prompt.epoch import current_epoch, head_of
from agents.engine.prompt.history import (
    history_since,
    last_usage,
    late_notes,
    latest_compaction,
    open_turn,
)
from agents.engine.prompt.token_count import Meter, measured
from agents.engine.prompt.window import window_of
from agents.engine.run_context import DrivenRun
from agents.engine.session import Session
from agents.engine.storage.journal import Call, Writer, check_fence
from agents.engine.storage.lease import Claim
from agents.events.append import append_events, dump
from agents.events.catalogue.messages import StepCompleted, StepReset, StepStarted
from agents.kernel.window import Window
from agents.middleware.filesystem import files_of
from agents.middleware.registry import toolset_of
from agents.middleware.run_parts import (
    RunPart,
    RunParts,
    begin_parts,
    load_parts,
    prepare_parts,
)
from agents.models import Run, RunEvent
from agents.providers.absent import provider_or_absent
from agents.providers.base import PromptHead, Provider, Role
from agents.services.files.workspaces import WorkspaceLocation, assign_sandbox_uid, run_location
from agents.spec import AgentSpec
from agents.structured_output.validation import message_note


@dataclass(frozen=True, slots=True)
class Loaded:
    """The stored state of a run. `last_step` is the type of its last step event, or ""."""

    head: PromptHead
    history: list[tuple[Role, str]]
    meter: Meter
    calls: list[Call]
    last_step: str
    parts: RunParts
    location: WorkspaceLocation
    has_left_out: bool
    late_notes: list[str] = field(default_factory=list)


def load_run(
    writer: Writer,
    run: Run,
    spec: AgentSpec,
    prepared: Mapping[type[RunPart], Any],
    output_format: str = "",
    window: Window | None = None,
) -> Loaded:
    """Return the stored state of a run. Call this in a transaction. Raises `FenceLost`.

    The first load of a run defines its parts, and later loads read them from rows. Each load uses
    the prompt of the thread's last epoch, or starts a new epoch: see `current_epoch`. If the agent
    has a sandbox and the thread has no host account, it gets one: see `assign_sandbox_uid`.

    Args:
        writer: The right to write to the run.
        run: The run.
        spec: The definition with which the run continues.
        prepared: The values that parts prepared for the start, by class; see `prepare_parts`.
        output_format: The provider's form of the output schema; see `begin_epoch`.
        window: The limits of the model. None: those of `spec`.
    """
    if not run.has_begun:
        # Lock the run before its clock, as everywhere, because this writes its row. This also
        # detects a deleted run, which has no fencing token.
        list(Run.objects.select_for_update(no_key=True).filter(pk=run.pk).values_list("pk"))
    check_fence(writer)
    if not run.has_begun:
        _begin(run, spec, prepared)
    parts = load_parts(run, spec)
    calls = open_turn(run)
    epoch = current_epoch(
        run, spec, parts, calls_open=bool(calls), output_format=output_format, window=window
    )
    if spec.sandbox:
        assign_sandbox_uid(run.thread)
    last = (
        RunEvent.objects.filter(run=run, type__in=(StepStarted.type, StepCompleted.type))
        .order_by("-seq")
        .values_list("type", flat=True)
        .first()
    )
    shorter = latest_compaction(run.thread_id)
    history = list(history_since(shorter, run))
    meter = measured(head_of(epoch), history, last=last_usage(run, epoch))
    return Loaded(
        head=head_of(epoch),
        history=history,
        meter=meter,
        calls=calls,
        last_step=last or "",
        parts=parts,
        location=run_location(run),
        has_left_out=shorter is not None,
        late_notes=late_notes(run, calls),
    )


def _begin(run: Run, spec: AgentSpec, prepared: Mapping[type[RunPart], Any]) -> None:
    """Store the parts of the run, and the notes for the model after the person's message."""
    events, notes = begin_parts(run, spec, prepared)
    form = message_note(dump(run.output_schema)) if run.output_schema is not None else ""
    # An earlier driver stored the first note.
    run.opening_note = "\n".join(note for note in (run.opening_note, form, *notes) if note)
    run.has_begun = True
    run.save(update_fields=["has_begun", "opening_note"])
    append_events(run.pk, events)


async def _load(
    worker: Resources, writer: Writer, run: Run, spec: AgentSpec, provider: Provider, window: Window
) -> Loaded:
    prepared = {} if run.has_begun else await prepare_parts(worker, run, spec)
    output_format = await output_format_of(provider, spec)
    return await worker.database.run(load_run, writer, run, spec, prepared, output_format, window)


async def open_session(
    worker: Resources, handle: RunHandle, claim: Claim, context: DrivenRun
) -> Session:
    """Return the session of a driver.

    Raises `ToolkitMissing` if this process does not have the tools of the run's Python program,
    `ProviderError`, `Stopped` and `FenceLost`.
    """
    run, clock, writer, spec = claim.run, claim.clock, context.writer, context.spec
    provider = provider_or_absent(worker.provider, spec.provider)
    with handle.interruptible():  # this may send a request to a model server
        window = await window_of(provider, spec)
    loaded = await _load(worker, writer, run, spec, provider, window)
    conversation = await conversation_of(
        worker.database, provider, run, loaded.head, loaded.history
    )
    toolset = toolset_of(run, spec, has_left_out=loaded.has_left_out)
    session = Session(
        context=context,
        chain=context.chain,
        run=run,
        spec=spec,
        toolset=toolset,
        writer=writer,
        handle=handle,
        database=worker.database,
        threads=worker.threads,
        provider=provider,
        head=loaded.head,
        conversation=conversation,
        window=window,
        meter=loaded.meter,
        stream=worker.deltas(writer),
        files=ThreadFiles(
            loaded.location,
            run.agent_version.agent_id,
            spec,
            loaded.parts,
            writer,
            worker.database,
            asyncio.get_running_loop(),
            files_of(toolset.middleware),
        ),
        parts=loaded.parts,
        read_uploads=partial(look_at_uploads, worker, handle, writer),
        turn=clock.turn,
        tokens=clock.total_tokens,
        cost_microusd=clock.cost_microusd,
        active_ms_before=clock.active_ms,
    )
    session.gate = installed_gate()(session)
    context.session = session
    session.open_calls, session.late_notes = loaded.calls, loaded.late_notes
    if loaded.last_step == StepStarted.type:
        session.stream.put(StepReset(step=session.turn + 1, reason="the model call is made again"))
    return session

"""Epochs: parts of a thread during which the start of the prompt does not change.

Invariant 5 (docs/contributing/architecture.md): within an epoch, the first bytes of every request
are the same. The head of the prompt is built once and stored, so that neither a new date nor a new
version of this code changes it during a conversation.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Max

from agents.kernel.window import Window
from agents.middleware.registry import toolset_of
from agents.middleware.run_parts import RunParts
from agents.models import Compaction, Epoch, Message, MessageRole, Run
from agents.prompt_variables import names_in
from agents.providers.base import Block, PromptHead
from agents.providers.prices import default_thinking
from agents.services.agent_definitions.prompt_values import values_of
from agents.spec import AgentSpec

OWN = "definition"
"""The key of the run's own definition, beside the keys of parts, which are labels of features."""


def current_epoch(
    run: Run,
    spec: AgentSpec,
    parts: RunParts,
    *,
    calls_open: bool,
    window: Window | None = None,
    output_format: str = "",
) -> Epoch:
    """Return the thread's last epoch, or start a new one for this run.

    A new version of the agent, another definition or model of the run, and new content of a
    feature's part start an epoch. While calls are open (`calls_open`), only a new version does: new
    content of a part waits (`RunPart.prompt_is_old`). `window` and `output_format` are those of
    `begin_epoch`.
    """
    last = _last_epoch(run)
    if last is None or last.agent_version_id != run.agent_version_id:
        return _epoch_after(last, run, spec, parts, window, output_format)
    is_other = model_of(last) != (spec.provider, spec.model)
    is_other |= last.part_keys.get(OWN) != _own_key(run)
    if not calls_open and is_other:
        return _epoch_after(last, run, spec, parts, window, output_format)
    if last.first_run is None and not calls_open and any(part.must_be_told() for part in parts):
        return _epoch_after(last, run, spec, parts, window)
    keys = parts.prompt_keys()
    for part in parts:
        part.prompt_is_old = keys.get(part.label) != last.part_keys.get(part.label)
    if parts.prompt_is_old and not calls_open:
        return _epoch_after(last, run, spec, parts, window)
    return last


def begin_epoch(
    run: Run,
    spec: AgentSpec,
    parts: RunParts,
    window: Window | None = None,
    output_format: str | None = None,
) -> Epoch:
    """Start a new epoch with the next turn of `run`. Never call this while calls are open.

    `window` limits the length of replies. `output_format` is the provider's form of
    `spec.output_schema`. If it is empty, the schema is part of the prompt; None keeps the format of
    the last epoch.
    """
    return _epoch_after(_last_epoch(run), run, spec, parts, window, output_format)


def _last_epoch(run: Run) -> Epoch | None:
    return Epoch.objects.filter(thread_id=run.thread_id).order_by("-number").first()


def _epoch_after(
    last: Epoch | None,
    run: Run,
    spec: AgentSpec,
    parts: RunParts,
    window: Window | None,
    output_format: str | None = None,
) -> Epoch:
    has_left_out = Compaction.objects.filter(thread_id=run.thread_id).exists()
    toolset = toolset_of(run, spec, has_left_out=has_left_out)
    now = datetime.now(ZoneInfo(run.thread.time_zone))
    for part in parts:
        part.prompt_is_old = False
    if output_format is None:
        output_format = last.head.get("output_format", "") if last else ""
    own_key = _own_key(run)
    values = values_of(run.thread) if names_in(spec.system_prompt) else {}
    says_form = not output_format
    return Epoch.objects.create(
        thread_id=run.thread_id,
        number=last.number + 1 if last else 1,
        agent_version_id=run.agent_version_id,
        first_run=run.number,
        first_turn=next_turn(run),
        part_keys={**parts.prompt_keys(), **({OWN: own_key} if own_key else {})},
        provider=spec.provider,
        head={
            "model": spec.model,
            "system": toolset.system_prompt(
                spec,
                now,
                parts.prompt_content(),
                values=values,
                says_form=says_form,
                in_own_directory=bool(run.thread.workspace_path),
            ),
            "tools": list(toolset.wire),
            "max_tokens": window.output if window else spec.max_output_tokens,
            "thinking": _thinking(spec),
            "effort": spec.effort or None,
            **({"output_format": output_format} if output_format else {}),
            **({} if spec.prompt_caching else {"caches": False}),
        },
    )


def _own_key(run: Run) -> str | None:
    """Return a text that changes with the definition that the run alone uses; None without it."""
    if run.subagent_spec is None:
        return None
    return hashlib.sha256(json.dumps(run.subagent_spec, sort_keys=True).encode()).hexdigest()


def model_of(epoch: Epoch) -> tuple[str, str]:
    """Return the provider and the model of an epoch."""
    return epoch.provider, epoch.head["model"]


def next_turn(run: Run) -> int:
    """Return the number of the run's next turn.

    Turns before it may contain thoughts that belong to earlier prompts.
    """
    turns = Message.objects.filter(run=run, role=MessageRole.ASSISTANT)
    return (turns.aggregate(last=Max("turn"))["last"] or 0) + 1


def _thinking(spec: AgentSpec) -> Block | None:
    """Return the agent's setting for thinking, or the default of the model."""
    if spec.thinking == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    if spec.thinking == "disabled":
        return {"type": "disabled"}
    return default_thinking(spec.model)


def head_of(epoch: Epoch) -> PromptHead:
    """Return the head of the prompt. Its cache key, if any, is the same for the whole thread."""
    head = PromptHead(**{**epoch.head, "tools": tuple(epoch.head["tools"])})
    if not head.caches:
        return head
    key = hashlib.sha256(b"vel-prompt-cache:" + str(epoch.thread_id).encode()).hexdigest()[:32]
    return replace(head, cache_key=key)

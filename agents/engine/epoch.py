"""The prompt's fixed beginning.

Invariant 5: within an epoch the first bytes of every request are the same. The head is built once,
stored, and read back ever after, so that neither a new date nor a new version of this code changes
it in the middle of a conversation.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from agents.middleware.registry import toolset_for
from agents.models import Epoch, Run
from agents.providers.base import Block, PromptHead
from agents.providers.prices import default_thinking
from agents.spec import AgentSpec


def current_epoch(run: Run, spec: AgentSpec) -> Epoch:
    """The thread's epoch for this run: the last one, or a new one for another agent version."""
    last = Epoch.objects.filter(thread_id=run.thread_id).order_by("-number").first()
    if last is not None and last.agent_version_id == run.agent_version_id:
        return last
    toolset = toolset_for(spec)
    now = datetime.now(ZoneInfo(run.thread.time_zone))
    return Epoch.objects.create(
        thread_id=run.thread_id,
        number=last.number + 1 if last else 1,
        agent_version_id=run.agent_version_id,
        provider=spec.provider,
        head={
            "model": spec.model,
            "system": toolset.system_prompt(spec, now),
            "tools": list(toolset.wire),
            "max_tokens": spec.max_output_tokens,
            "thinking": _thinking(spec),
            "effort": spec.effort or None,
        },
    )


def _thinking(spec: AgentSpec) -> Block | None:
    """What the agent says, else what shows most of the model that it has."""
    if spec.thinking == "adaptive":
        return {"type": "adaptive", "display": "summarized"}
    if spec.thinking == "disabled":
        return {"type": "disabled"}
    return default_thinking(spec.model)


def head_of(epoch: Epoch) -> PromptHead:
    return PromptHead(**{**epoch.head, "tools": tuple(epoch.head["tools"])})

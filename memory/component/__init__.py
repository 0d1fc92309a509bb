"""The memory of an agent as a component."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from agents.sdk import arguments
from agents.sdk.built_in import BuiltInMiddleware, with_options
from agents.sdk.config import DeepAgentConfig
from memory.options import MemoryOptions


class MemoryMiddleware(BuiltInMiddleware):
    """The memory tools of an agent (docs/guides/memory.md).

    Outside of an agent, this object has no tools, because memory files belong to an agent.

    Args:
        saving: `ask` or `save`: the agent's option `memory_saving`. None keeps the agent's value.
        requests: `wait` or `continue`: the agent's option `memory_requests`. None keeps the agent's
            value.

    >>> agent = create_deep_agent(middleware=[MemoryMiddleware(requests="continue")])
    >>> agent.config.memory
    True
    """

    name = "memory"
    leave_out = "memory=False"

    def __init__(self, saving: str | None = None, requests: str | None = None) -> None:
        self.saving = _checked("saving", saving)
        self.requests = _checked("requests", requests)

    def configure(self, config: DeepAgentConfig) -> DeepAgentConfig:
        values = {"memory_saving": self.saving, "memory_requests": self.requests}
        return with_options(replace(config, memory=True), values, "MemoryMiddleware")


def _checked(name: str, value: Any) -> str | None:
    known = get_args(MemoryOptions.model_fields[f"memory_{name}"].annotation)
    if value is not None and value not in known:
        raise arguments.wrong(name, f"{' or '.join(known)}, or None", value)
    return value

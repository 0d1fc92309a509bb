"""Options of an agent: how its conversations are kept within the window of the model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.kernel.options import AgentOptions
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec


class ContextOptions(AgentOptions):
    """Options for `CompactionMiddleware` and `EvictionMiddleware`."""

    title = "Long conversations"
    listed = []

    context_management: bool = Field(
        default=True,
        description="Long results go to files, and long conversations are shortened. Off: a run "
        "fails when its conversation does not fit into the model's window.",
    )
    evict_bytes: Annotated[int, Field(ge=1_000, le=20_000_000)] | None = Field(
        default=None,
        description="A longer result of a tool goes to a file. Empty: as the settings say.",
    )
    compact_at: Annotated[float, Field(ge=0.1, le=1)] | None = Field(
        default=None,
        description="A conversation is shortened when it fills this part of the context window, "
        "such as 0.5. The room for the longest reply does not count as part of the window "
        "(docs/guides/context.md). Empty: as the settings say.",
    )

    def check(self, spec: AgentSpec) -> None:
        """Refuse values that have no effect."""
        if self.context_management:
            return
        for name in ("evict_bytes", "compact_at"):
            if getattr(self, name) is not None:
                raise InvalidRequest(
                    f"{name}: it has no effect without context_management. Set context_management, "
                    "or remove it.",
                    code="invalid_agent",
                )


OPTIONS = (ContextOptions,)

"""Options of an agent: how its structured answers are repaired."""

from __future__ import annotations

from pydantic import Field

from agents.kernel.options import AgentOptions


class RepairOptions(AgentOptions):
    """Options for `StructuredOutputMiddleware`."""

    title = "Form of answers"
    listed = []

    output_repairs: int = Field(
        default=2,
        ge=0,
        le=5,
        description="How often it is asked again when a final answer does not fit its form.",
    )


OPTIONS = (RepairOptions,)

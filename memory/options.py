"""Options of an agent: whether it saves knowledge without asking."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agents.kernel.options import AgentOptions, Labels


class MemoryOptions(AgentOptions):
    title = "Memory"
    listed = []

    memory_saving: Annotated[
        Literal["ask", "save"],
        Labels({"ask": "after a person's approval", "save": "without asking"}),
    ] = Field(
        default="ask",
        description="How it saves knowledge. Without asking: only in its owner's runs of an agent "
        "that nobody else can use, and only what the scanner does not suspect.",
    )
    memory_requests: Annotated[
        Literal["wait", "continue"],
        Labels({"wait": "the run waits", "continue": "the run goes on"}),
    ] = Field(
        default="wait",
        description="What its run does until a person has decided about an edit of the memory.",
    )


OPTIONS = (MemoryOptions,)

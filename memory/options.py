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
        description="How it saves knowledge. ask: after a person's approval. save: without asking, "
        "if several conditions are met. For example, the agent is not shared, and its owner has "
        "written all messages of the conversation (docs/guides/memory.md).",
    )
    memory_requests: Annotated[
        Literal["wait", "continue"],
        Labels({"wait": "the run waits", "continue": "the run continues"}),
    ] = Field(
        default="wait",
        description="Whether its run waits until a person has decided about an edit of the memory.",
    )


OPTIONS = (MemoryOptions,)

"""The options of an agent for its skills."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agents.kernel.options import AgentOptions, Labels


class SkillOptions(AgentOptions):
    """The skills of an agent, and the place of their instructions."""

    title = "Skills"
    listed = []

    builtin_skills: bool = Field(default=True, description="Whether it has the built-in skills.")
    suggest_skills: bool = Field(
        default=True,
        description="Whether the model gets, with a message, the names of skills that fit it.",
    )
    skill_mode: Annotated[
        Literal["tool_result", "system_prompt"],
        Labels(
            {
                "tool_result": "as the result of loading it",
                "system_prompt": "in the system prompt: each change costs the prompt cache",
            }
        ),
    ] = Field(
        default="tool_result",
        description="The place of the instructions of a loaded skill. In the system prompt they "
        "change the start of every request: each skill that is loaded or deactivated breaks the "
        "prompt cache, and you pay for the whole conversation again.",
    )


OPTIONS = (SkillOptions,)

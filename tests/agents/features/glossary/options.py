from pydantic import Field

from agents.kernel.options import AgentOptions


class GlossaryOptions(AgentOptions):
    title = "Glossary"

    glossary: bool = Field(default=False, description="Whether the agent can look up words.")
    glossary_length: int = Field(
        default=200, ge=10, description="Characters of a meaning that the agent gets."
    )


OPTIONS = [GlossaryOptions]

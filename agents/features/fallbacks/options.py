"""Options of an agent: its fallback models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from agents.kernel.options import AgentOptions, FormHelp, Suggest
from agents.providers.registry import PROVIDERS
from agents.services.errors import InvalidRequest
from agents.spec import AgentSpec

MAX_FALLBACKS = 3
SCRIPTED = "scripted"


class FallbackModel(BaseModel):
    """A model that continues a run if those before it are unavailable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Annotated[str, Suggest("providers")] = Field(
        min_length=1, max_length=50, description="The name of the provider, such as anthropic."
    )
    model: str = Field(
        min_length=1, max_length=200, description="The name of the model at this provider."
    )


class FallbackOptions(AgentOptions):
    """Options for `FallbacksMiddleware`."""

    title = "Model"
    listed = ["fallbacks"]

    fallbacks: Annotated[
        tuple[FallbackModel, ...],
        FormHelp(
            "Models that continue, in this order, when the one before is unavailable; at most 3."
        ),
    ] = Field(
        default=(),
        max_length=MAX_FALLBACKS,
        description="Models that continue, in this order, when the one before is unavailable, as "
        '[{"provider": "anthropic", "model": "claude-haiku-4-5"}]; at most 3 '
        "(docs/guides/fallbacks.md).",
    )

    def needed_middleware(self) -> dict[str, str]:
        return {"fallbacks": "fallbacks"} if self.fallbacks else {}

    def check(self, spec: AgentSpec) -> None:
        """Refuse an unknown provider, the scripted model, and a repeated model.

        The agent's own model is valid, and skipped: the model of an agent that names none comes
        from the settings, and may change.
        """
        if problem := problem_of(self.fallbacks):
            raise InvalidRequest(problem, code="invalid_agent")


def problem_of(fallbacks: Sequence[FallbackModel]) -> str:
    """Return the error of the first model that cannot be a fallback; empty without one."""
    known = [name for name in PROVIDERS if name != SCRIPTED]
    for index, choice in enumerate(fallbacks):
        if choice.provider == SCRIPTED:
            # It would answer a person from a script.
            reason = "the scripted model cannot be a fallback"
        elif choice.provider not in known:
            reason = f"{choice.provider!r} is no provider; there are {', '.join(known)}"
        elif choice in fallbacks[:index]:
            reason = f"{choice.provider} {choice.model} is named twice"
        else:
            continue
        return f"fallbacks.{index}: {reason}."
    return ""


OPTIONS = (FallbackOptions,)

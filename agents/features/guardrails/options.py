"""Options of an agent: its guardrails, and reactions to repetition and to failed calls."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.features.guardrails.registry import guardrails
from agents.features.guardrails.usable import OF_PROGRAM
from agents.kernel.options import AgentOptions, FormHelp, Labels, Location, Suggest
from agents.services.errors import InvalidRequest
from agents.spec import CONFIGURE_APPROVAL, AgentSpec, Name


class RetryRule(BaseModel):
    """Rule for calls that are made again after a transient error, if they are read-only.

    `tool` is a name or a pattern with `*`; the first rule that fits decides. `attempts` includes
    the first one. `backoff` is the first pause in seconds; it doubles, up to a minute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: Annotated[str, Suggest("tools")] = Field(
        min_length=1, max_length=200, description="The name of a tool, or a pattern with *."
    )
    attempts: int = Field(
        ge=2, le=10, description="The largest number of attempts, with the first one."
    )
    backoff: float = Field(
        default=1.0,
        ge=0,
        le=60,
        description="Seconds before the second attempt. Each further pause is twice as long, up to "
        "a minute.",
    )


class GuardrailOptions(AgentOptions):
    """Options for `GuardrailMiddleware`."""

    title = "Guardrails"
    permission = CONFIGURE_APPROVAL
    listed = []

    guardrails: tuple[Name, ...] = Field(
        default=(),
        description="Checks of its messages, replies, calls and results "
        "(docs/guides/guardrails.md).",
    )

    def needed_middleware(self) -> dict[str, str]:
        return {"guardrails": "guardrails"} if self.guardrails else {}

    def check(self, spec: AgentSpec) -> None:
        """Refuse unknown and repeated guardrails."""
        for name in self.guardrails:
            of_program = bool(spec.toolkit) and name.startswith(OF_PROGRAM)
            if name not in guardrails() and not of_program:
                known = ", ".join(guardrails())
                raise InvalidRequest(
                    f"guardrails: {name!r} is not registered; there are {known}.",
                    code="invalid_agent",
                )
            if self.guardrails.count(name) > 1:
                raise InvalidRequest(f"guardrails: {name!r} is named twice.", code="invalid_agent")


class RetryOptions(AgentOptions):
    """Options for `StuckMiddleware`, `ModelRetries` and `ToolRetries`."""

    title = "Guardrails"
    listed = []

    on_stuck: Annotated[
        Literal["note", "end"],
        Labels({"note": "note to the model", "end": "note to the model, then end the run"}),
    ] = Field(
        default="note",
        description="What happens if calls repeat with the same results. note: the model gets a "
        "note. end: the model gets a note, and if it continues, the run fails.",
    )
    tool_retries: Annotated[
        tuple[RetryRule, ...],
        FormHelp("Calls that only read are made again after a time-out or a lost connection."),
    ] = Field(
        default=(),
        description="Calls that only read are made again after a time-out or a lost connection, as "
        '[{"tool": "execute_sql", "attempts": 3, "backoff": 1}]. Empty: none are.',
    )

    model_attempts: Annotated[int, Field(ge=1, le=20)] | None = Field(
        default=None,
        description="The maximum number of attempts of a model call that fails with temporary "
        "errors. The first call counts: 1 means no repetition. Empty: as the settings say.",
    )

    def retry_rule(self, tool: str) -> RetryRule | None:
        """Return the first rule that fits a tool."""
        return next((rule for rule in self.tool_retries if fnmatchcase(tool, rule.tool)), None)

    def needed_middleware(self) -> dict[str, str]:
        needed = {}
        if self.on_stuck == "end":
            needed["stuck"] = "on_stuck"
        if self.tool_retries:
            needed["tool_retries"] = "tool_retries"
        return needed

    def tool_names(self) -> Iterator[tuple[Location, str]]:
        rules = enumerate(self.tool_retries)
        yield from ((("tool_retries", at, "tool"), rule.tool) for at, rule in rules)


OPTIONS = (GuardrailOptions, RetryOptions)

"""Final answers in a form that was asked for.

An answer is checked before it is stored, and stored together with what follows from it: the
run's end with the value, or the event and the note by which the model is asked again. So there is
no moment at which a crash could lose the check, and whoever drives the run next has the same
conversation, byte for byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from agents.engine.history import BAD_ENDINGS
from agents.engine.notes import note_json
from agents.events.append import EventDraft, dump
from agents.events.catalogue.runs import RunFailed
from agents.events.catalogue.structured_output import Mismatch, OutputInvalid
from agents.models import Run, RunEvent
from agents.providers.base import Reply
from agents.spec import AgentSpec
from agents.structured_output.reply import NoValue, value_in
from agents.structured_output.schema import check_schema
from agents.structured_output.validation import Problem, problems_in
from agents.structured_output.wording import CUT_OFF, repair_text

INVALID = "output_invalid"
"""Error code of a run whose answers did not fit."""


@dataclass(slots=True)
class FinalOutput:
    """The form of a run's final answer.

    `invalid` answers have not fitted since the run began, or since a person resumed it.
    """

    schema: dict[str, Any]
    repairs: int
    invalid: int
    told_again: str = ""
    """JSON text of the schema, where the system prompt does not say it: told with each problem."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one answer: its value, or what does not fit and the note that says so."""

    value: Any = None
    problems: Sequence[Problem] = ()
    attempt: int = 0
    asks_again: bool = False
    note: str = ""
    events: list[EventDraft] = field(default_factory=list)

    @property
    def fits(self) -> bool:
        return not self.problems

    @property
    def failure(self) -> str:
        """For people: why the run ends."""
        times = "The answer does not" if self.attempt == 1 else f"{self.attempt} answers did not"
        return f"{times} fit the form that was asked for: {self.problems[0]}"


def final_output(run: Run, spec: AgentSpec, *, in_prompt: bool) -> FinalOutput | None:
    """The form that this run's answer must have, None for none. Queries only if there is one.

    `in_prompt`: the system prompt says the agent's.
    """
    given = run.output_schema if run.output_schema is not None else spec.output_schema_value
    if given is None:
        return None
    events = RunEvent.objects.filter(run=run)
    failures = events.filter(type=RunFailed.type).order_by("-seq")
    failed = failures.values_list("seq", flat=True).first()
    invalid = events.filter(type=OutputInvalid.type, seq__gt=failed or 0).count()
    is_told = in_prompt and run.output_schema is None
    again = "" if is_told else dump(given)
    return FinalOutput(check_schema(given), spec.output_repairs, invalid, again)


async def judge_final(
    output: FinalOutput | None, reply: Reply, threads: Executor
) -> Verdict | None:
    """Whether `reply` may be the run's last. None: nothing is asked of it, or it is a refusal."""
    if output is None or reply.stop_reason in BAD_ENDINGS:
        return None
    loop = asyncio.get_running_loop()
    value, problems = await loop.run_in_executor(threads, _check, reply, output.schema)
    if not problems:
        return Verdict(value)
    attempt = output.invalid + 1
    found: list[Mismatch] = [
        {"path": problem.path, "message": problem.message} for problem in problems
    ]
    return Verdict(
        problems=problems,
        attempt=attempt,
        asks_again=attempt <= output.repairs,
        note=note_json(repair_text(problems, output.told_again)),
        events=[OutputInvalid(attempt=attempt, problems=found)],
    )


def _check(reply: Reply, schema: dict[str, Any]) -> tuple[Any, list[Problem]]:
    text = "".join(block["text"] for block in reply.blocks if block["type"] == "text")
    try:
        value = value_in(text)
    except NoValue as problem:
        cut = reply.stop_reason == "max_tokens"
        return None, [Problem("", CUT_OFF if cut else str(problem))]
    return value, problems_in(value, schema)

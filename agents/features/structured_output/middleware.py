"""Check structured final answers.

An answer is checked before it is stored, and stored in one transaction with its consequences: the
end of the run with the value, or the event and the note that asks the model to repair it. So a
crash cannot lose the check, and another worker continues with exactly the same conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.engine.prompt.history import BAD_ENDINGS
from agents.events.append import dump
from agents.events.catalogue.runs import RunFailed
from agents.events.catalogue.structured_output import Mismatch, OutputInvalid
from agents.features.structured_output.options import RepairOptions
from agents.kernel.middleware import Ending, LoadContext, ReplyDecision, RunContext
from agents.kernel.park import End
from agents.middleware.base import Middleware
from agents.models import Run, RunEvent
from agents.providers.base import Reply
from agents.structured_output.reply import NoValue, value_in
from agents.structured_output.schema import check_schema
from agents.structured_output.validation import CUT_OFF, Problem, problems_in, repair_text

INVALID = "output_invalid"
"""Error code of a run whose answers did not fit the schema."""


@dataclass(slots=True)
class FinalOutput:
    """The schema of a run's final answer.

    `invalid` is the number of answers that did not fit since the run's start or its last
    resumption.
    """

    schema: dict[str, Any]
    text: str
    """The schema as text for the model."""
    repairs: int
    invalid: int


class StructuredOutputMiddleware(Middleware):
    """A middleware that checks the final answers of runs with a schema."""

    name = "structured_output"

    def load(self, context: LoadContext) -> FinalOutput | None:
        """Return the schema, or None. Queries only if the run has a schema."""
        run, spec = context.row, context.spec
        given = run.output_schema if run.output_schema is not None else spec.output_schema_value
        if given is None:
            return None
        events = RunEvent.objects.filter(run=run)
        failures = events.filter(type=RunFailed.type).order_by("-seq")
        failed = failures.values_list("seq", flat=True).first()
        invalid = events.filter(type=OutputInvalid.type, seq__gt=failed or 0).count()
        return FinalOutput(
            check_schema(given), dump(given), spec.option(RepairOptions).output_repairs, invalid
        )

    async def after_model(self, run: RunContext, ending: Ending) -> ReplyDecision | None:
        """Check a reply that may be the last one. A refusal by the model is not checked."""
        if not ending.ends or ending.reply.stop_reason in BAD_ENDINGS:
            return None
        output = run.state(FinalOutput)
        value, problems = await run.in_thread(_check, ending.reply, output.schema)
        if not problems:
            return ReplyDecision(
                completed={"structured_output": value},
                writes=[partial(_store, run.row.pk, value)],
            )
        attempt = output.invalid + 1
        found: list[Mismatch] = [
            {"path": problem.path, "message": problem.message} for problem in problems
        ]
        return ReplyDecision(
            # Also at the end: a person who resumes the run gives the model new attempts.
            note=repair_text(problems, _told_again(run, output)),
            end=End(INVALID, _failure(attempt, problems)) if attempt > output.repairs else None,
            events=[OutputInvalid(attempt=attempt, problems=found)],
            then=partial(setattr, output, "invalid", attempt),
        )


def _store(run_id: str, value: Any) -> None:
    Run.objects.filter(pk=run_id).update(structured_output=value)


def _told_again(run: RunContext, output: FinalOutput) -> str:
    """Return the schema for the note if the system prompt does not contain it."""
    is_in_prompt = run.row.output_schema is None and not run.head.output_format
    return "" if is_in_prompt else output.text


def _failure(attempt: int, problems: Sequence[Problem]) -> str:
    """Return the reason for the end of the run, for people."""
    times = "The answer does not" if attempt == 1 else f"{attempt} answers did not"
    return f"{times} fit the form that was asked for: {problems[0]}"


def _check(reply: Reply, schema: dict[str, Any]) -> tuple[Any, list[Problem]]:
    text = "".join(block["text"] for block in reply.blocks if block["type"] == "text")
    try:
        value = value_in(text)
    except NoValue as problem:
        cut = reply.stop_reason == "max_tokens"
        return None, [Problem("", CUT_OFF if cut else str(problem))]
    return value, problems_in(value, schema)


MIDDLEWARE = (StructuredOutputMiddleware(),)

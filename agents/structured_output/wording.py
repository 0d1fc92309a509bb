"""Texts for the model about the form of its answer. Rows store them, so they never change."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agents.structured_output.validation import Problem

CUT_OFF = "The answer was cut off at the limit of output tokens: give a shorter one."


def prompt_segment(schema_text: str) -> str:
    """Return a part of the system prompt, for all answers of an agent."""
    return (
        "## Form of the answer\n"
        "Your final answer to each message is one JSON value that fits this JSON Schema, and "
        f"nothing else: no words before or after it.\n\n{compact(schema_text)}"
    )


def message_note(schema_text: str) -> str:
    """Return a note for one message, about the answer to it."""
    return (
        "[Vel: the final answer to this message must be one JSON value that fits this JSON Schema, "
        f"and nothing else, no words before or after it: {compact(schema_text)}]"
    )


def repair_text(problems: Sequence[Problem], schema_text: str = "") -> str:
    """Return the message after an invalid answer. Add the schema if the system prompt lacks it.

    In a long run, the note of the message may have been summarized.
    """
    listed = "\n".join(f"- {problem}" for problem in problems)
    return (
        "Your answer does not fit the form that was asked for:\n"
        f"{listed}\n"
        "Answer again with the whole JSON value and nothing else."
        f"{' It must fit this JSON Schema: ' + compact(schema_text) if schema_text else ''}"
    )


def compact(schema_text: str) -> str:
    """Return JSON text without spaces."""
    return json.dumps(json.loads(schema_text), ensure_ascii=False, separators=(",", ":"))

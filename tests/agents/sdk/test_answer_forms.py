"""A class as `output_schema`: the model gets its schema, and the program gets an instance."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator

from agents.models import Agent, Run
from tests.agents.sdk.conftest import MakeAgent
from vel import RunFailed, RunInterrupted, SetupError, StreamEvent, create_deep_agent, tool


class Currency(Enum):
    EUR = "eur"
    USD = "usd"


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class Transfer(BaseModel):
    kind: Literal["transfer"]
    iban: str


class Invoice(BaseModel):
    """An invoice."""

    total: Decimal = Field(ge=0, description="With taxes")
    currency: Currency
    payment: Annotated[Card | Transfer, Field(discriminator="kind")]
    due_in: timedelta = timedelta(days=30)
    title: str = ""
    format: str = ""


INVOICE = '{"total": 12.5, "currency": "eur", "payment": {"kind": "card", "number": "4"}}'


@dataclass
class Line:
    name: str


@dataclass
class Order:
    lines: list[Line]
    note: str | None = None


class Part(TypedDict):
    name: str


class Parts(TypedDict, total=False):
    """Parts of a machine."""

    parts: list[Part]
    note: NotRequired[str]


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


class Tree(BaseModel):
    below: list[Tree] = []


@pytest.mark.parametrize(
    ("kind", "answer", "instance"),
    [
        (
            Invoice,
            INVOICE,
            Invoice(
                total=Decimal("12.5"),
                currency=Currency.EUR,
                payment=Card(kind="card", number="4"),
            ),
        ),
        (Order, '{"lines": [{"name": "x"}]}', Order([Line("x")])),
        (Parts, '{"parts": [{"name": "x"}]}', {"parts": [{"name": "x"}]}),
        (list[Line], '[{"name": "x"}]', [Line("x")]),
    ],
)
def test_run_returns_an_instance(
    make_agent: MakeAgent, kind: Any, answer: str, instance: Any
) -> None:
    agent = make_agent([answer], output_schema=kind)
    assert asyncio.run(agent.run("Go")) == instance


def test_the_model_gets_the_schema_of_the_class(make_agent: MakeAgent) -> None:
    asyncio.run(make_agent([INVOICE], output_schema=Invoice).run("Go"))
    schema = Agent.objects.get().output_schema
    assert schema["description"] == "An invoice."
    assert schema["properties"]["total"] == {
        "type": "number",
        "minimum": 0.0,
        "description": "With taxes",
    }
    assert schema["properties"].keys() == Invoice.model_fields.keys()
    assert schema["required"] == ["total", "currency", "payment"]


def test_a_wrong_answer_is_repaired_by_the_schema_of_the_class(make_agent: MakeAgent) -> None:
    answers = iter(['{"lines": 3}', '{"lines": []}'])
    agent = make_agent(lambda messages: next(answers), output_schema=Order)
    assert asyncio.run(agent.run("Go")) == Order([])


def test_an_answer_that_only_the_class_refuses_is_a_failure(make_agent: MakeAgent) -> None:
    agent = make_agent(['{"number": 3}'], output_schema=Even)
    with pytest.raises(RunFailed, match="must be even") as failed:
        asyncio.run(agent.run("Go"))
    assert failed.value.code == "output_invalid"
    assert Run.objects.get().structured_output == {"number": 3}


@tool(requires_approval=True)
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


def test_the_end_of_a_stream_has_the_instance_too(make_agent: MakeAgent) -> None:
    turns = [{"tool_calls": [("send", {"to": "bob"})]}, '{"lines": []}']
    agent = make_agent(turns, tools=[send], output_schema=Order)

    async def use() -> StreamEvent:
        with pytest.raises(RunInterrupted):
            await agent.run("Go", session_id="s")
        return [event async for event in agent.resume("s")][-1]

    end = asyncio.run(use())
    assert (end.content, end.metadata["output"]) == ('{"lines":[]}', Order([]))


def test_a_json_schema_still_returns_text(make_agent: MakeAgent) -> None:
    agent = make_agent(['{"a": 1}'], output_schema={"type": "object"})
    assert asyncio.run(agent.run("Go")) == '{"a":1}'


@pytest.mark.parametrize("kind", [Tree, asyncio.Lock, Line("x"), "Invoice", 3])
def test_a_class_without_a_usable_schema_is_refused(kind: Any) -> None:
    with pytest.raises(SetupError, match=r"^output_schema"):
        create_deep_agent(output_schema=kind)

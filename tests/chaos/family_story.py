"""A story of agents that delegate: any number of children, some of which delegate once themselves.

The first message of a conversation identifies the agent. A result names its task, so that the test
notices a result that is lost, duplicated or in another's place.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from agents.models import Run, ToolCall
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Request, ToolUse, Turn

FAN = re.compile(r"Fan ([a-z0-9-]+) of (\d+)")
LEAF = re.compile(r"Leaf ([a-z0-9-]+)\.(\d+)")
TWIG = re.compile(r"Twig ([a-z0-9-]+)\.(\d+)")


def fan(name: str, width: int) -> str:
    """Return the first message of a parent with `count` children."""
    return f"Fan {name} of {width}"


def first_message(request: Request) -> str:
    content = request.messages[0]["content"]
    return content if isinstance(content, str) else str(content)


class FamilyServer(MessagesServer):
    """Plays the story. `delay` is the time of each child's answer, in seconds.

    `most_at_once` is the highest number of children's calls at the same time.
    """

    def __init__(self, *, delay: float = 0.05, with_twigs: bool = False) -> None:
        super().__init__(self._play)
        self._delay = delay
        self._with_twigs = with_twigs
        self._at_once = 0
        self.most_at_once = 0

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        is_child = FAN.search(first_message(request)) is None
        self._at_once += is_child
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await super()._answer(request, reader, writer)
        finally:
            self._at_once -= is_child

    def _play(self, request: Request) -> Turn:
        who = first_message(request)
        if found := FAN.search(who):
            return _fan_turn(found[1], int(found[2]), request.replies)
        if found := LEAF.search(who):
            return self._leaf_turn(found[1], int(found[2]), request.replies)
        found = TWIG.search(who)
        assert found is not None, who
        return self._answer_of(f"Twig {found[1]}.{found[2]}")

    def _leaf_turn(self, name: str, number: int, replies: int) -> Turn:
        if self._with_twigs and number % 4 == 1 and replies == 0:
            given = {"subagent": "general", "task": f"Twig {name}.{number}"}
            return Turn(text="I ask.", tool_uses=[ToolUse("task", given)])
        return self._answer_of(f"Leaf {name}.{number}")

    def _answer_of(self, who: str) -> Turn:
        return Turn(
            text=f"This is the answer of {who}, and all of it.", chunk_delay=self._delay / 4
        )


def _fan_turn(name: str, width: int, replies: int) -> Turn:
    if replies:
        return Turn(text=f"All of {name} have answered.")
    tasks = [{"subagent": "general", "task": f"Leaf {name}.{number}"} for number in range(width)]
    return Turn(text="I delegate.", tool_uses=[ToolUse("parallel_tasks", {"tasks": tasks})])


def results_of(parent: Run) -> list[dict[str, Any]]:
    call = ToolCall.objects.get(run=parent, tool="parallel_tasks")
    content = call.result_content
    assert isinstance(content, str)
    results: list[dict[str, Any]] = json.loads(content)["results"]
    return results


def check_fan(parent: Run, name: str, width: int) -> None:
    """Check one run for each task, all answers in the order of the tasks, and one wake-up."""
    children = list(parent.children.order_by("parent_index"))
    assert [child.parent_index for child in children] == list(range(width))
    results = results_of(parent)
    assert [item["id"] for item in results] == [child.pk for child in children]
    assert [item["result"] for item in results] == [
        f"This is the answer of Leaf {name}.{number}, and all of it." for number in range(width)
    ]
    suspended = parent.events.filter(type="run.suspended").count()
    woken = parent.events.filter(type="run.resumed", data__contains="subagents have ended").count()
    assert suspended == woken <= 1

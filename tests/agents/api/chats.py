"""A served site with a worker and agents for chats, and a client that reads raw chunks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import script_file
from tests.support.site import Site, migrated_site
from tests.support.site_worker import working
from tests.support.sse import Stream

Chunk = dict[str, Any]
PLAN = {"name": "write_todos", "input": {"todos": [{"content": "Look", "status": "pending"}]}}
LONG = "word " * 40
DONE = "All done."


class Chats:
    """A client of the site.

    `token` is olga's and has all scopes; `directory` has the agents' scripts.
    """

    def __init__(self, site: Site, directory: Path) -> None:
        self.site = site
        self.directory = directory
        self.token: str = site.do("make_token", user="olga", scopes=["read", "run", "approve"])

    def open(
        self,
        chat: str,
        messages: list[Any],
        agent: str = "talker",
        *,
        version: int = 6,
        token: str | None = None,
        **more: Any,
    ) -> Stream:
        body = {"id": chat, "messages": messages, "trigger": "submit-message", **more}
        path = f"agents/{agent}/chat?version={version}"
        return Stream(self.site, path, token=self.token if token is None else token, body=body)

    def say(self, chat: str, text: str, agent: str = "talker", **more: Any) -> list[Chunk]:
        """Return the chunks of the answer."""
        with self.open(chat, [user(text)], agent, **more) as stream:
            assert stream.status == 200, stream.problem()
            return chunks(stream)

    def get(self, path: str, token: str | None = None) -> tuple[int, Any]:
        with Stream(self.site, path, token=self.token if token is None else token) as stream:
            text = stream.response.read()
            return stream.status, json.loads(text) if text else None

    def post(self, path: str, body: Any, token: str | None = None) -> tuple[int, Any]:
        token = self.token if token is None else token
        with Stream(self.site, path, token=token, body=body) as stream:
            return stream.status, json.loads(stream.response.read())


def user(text: str, id: str = "m1") -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def answering(run: str, *approvals: str, approved: bool = True, reason: str = "") -> Any:
    """Return the assistant's message with a person's decisions in it."""
    parts = [
        {
            "type": "tool-write_todos",
            "state": "approval-responded",
            "approval": {"id": approval, "approved": approved, "reason": reason},
        }
        for approval in approvals
    ]
    return {"id": run, "role": "assistant", "parts": parts}


def chunks(stream: Stream) -> list[Chunk]:
    """Return all chunks of an answer, and check that it ends with `[DONE]`."""
    told = [frame["data"] for frame in stream.frames() if "data" in frame]
    assert told[-1] == "[DONE]"
    return [json.loads(text) for text in told[:-1]]


def types(found: list[Chunk]) -> list[str]:
    return [chunk["type"] for chunk in found]


def asked(found: list[Chunk]) -> tuple[str, str]:
    """Return the ids of the run and of the request in an answer that requests an approval."""
    (request,) = [chunk for chunk in found if chunk["type"] == "tool-approval-request"]
    return found[0]["messageId"], request["approvalId"]


@contextmanager
def served_chats(directory: Path) -> Iterator[Chats]:
    site = migrated_site(directory, os.environ.get("VEL_TEST_DATABASE_URL", ""))
    try:
        for name in ("olga", "peter"):
            site.do("make_user", name=name)
        agents: dict[str, dict[str, Any]] = {
            "talker": {"turns": [{"text": LONG, "tool_calls": [PLAN]}, {"text": DONE}]},
            "asker": {
                "turns": [{"text": "May I?", "tool_calls": [PLAN]}, {"text": DONE}],
                "interrupt_on": {"write_todos": True},
            },
            "slow": {"turns": [{"text": LONG, "delay": 10}]},
            "steady": {
                "turns": [{"text": LONG, "tool_calls": [PLAN], "delay": 0.5}, {"text": DONE}]
            },
        }
        for slug, fields in agents.items():
            model = script_file(directory, fields.pop("turns"), f"{slug}.json")
            site.do("make_agent", slug=slug, model=model, **fields)
        for version in (5, 6, 7):
            # The client of the AI SDK writes these scripts after the first failure.
            model = f"file:{directory}/fails-{version}.json"
            site.do("make_agent", slug=f"fails-{version}", model=model)
        site.start_server()
        with working(site):
            yield Chats(site, directory)
    finally:
        site.close()


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chats]:
    with served_chats(tmp_path_factory.mktemp("chats")) as found:
        yield found

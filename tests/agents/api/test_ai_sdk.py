"""Chats with the real clients of the Vercel AI SDK, versions 5, 6 and 7."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agents.api.chats import DONE, LONG, PLAN, Chats, chats
from tests.support.hang import HANG
from tests.support.npm import packages

__all__ = ["chats"]

pytestmark = pytest.mark.node

HERE = Path(__file__).parent / "ai_sdk"
TOOL = "tool-write_todos"

SCENES = {
    "talk": "talker",
    "cut": "steady",
    "cutInPlace": "steady",
    "endsBetween": "steady",
    "approve": "asker",
    "deny": "asker",
    "cancel": "slow",
    "refused": "talker",
}
"""Scenes, each with its agent. All scenes of a version run at the same time."""

Found = dict[str, Any]


@pytest.fixture(params=[5, pytest.param(6, marks=pytest.mark.slow), 7], scope="module")
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def place(version: int) -> Path:
    found = packages(HERE / f"v{version}")
    # Node resolves imports from the directory of the script.
    shutil.copy(HERE / "client.mjs", found / "client.mjs")
    return found


@pytest.fixture(scope="module")
def played(chats: Chats, version: int, place: Path) -> dict[str, Found]:
    """Return the results of the client for each scene."""
    scenes = {**SCENES, "error": f"fails-{version}", "approve@agent": "asker"}
    if version > 5:
        scenes |= {"approve@nothing": "asker", "deny@nothing": "asker", "cut@nothing": "steady"}
    arguments = [str(version), chats.site.url, chats.token, str(chats.directory)]
    arguments += [f"{scene}={agent}" for scene, agent in scenes.items()]
    done = subprocess.run(
        ["node", "client.mjs", *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Found] = json.loads(done.stdout)
    return found


def answer(chat: dict[str, Any]) -> dict[str, Any]:
    last: dict[str, Any] = chat["messages"][-1]
    assert last["role"] == "assistant"
    return last


def kinds(message: dict[str, Any]) -> list[str]:
    return [part["type"] for part in message["parts"]]


def tool_part(message: dict[str, Any]) -> dict[str, Any]:
    (part,) = [part for part in message["parts"] if part["type"] == TOOL]
    return part


@pytest.mark.slow
def test_text_and_tools_are_streamed_and_loaded_again(played: dict[str, Found]) -> None:
    found = played["talk"]

    assert found["chat"]["status"] == "ready"
    first, second = found["chat"]["messages"][1::2]
    assert kinds(first) == ["step-start", "text", TOOL, "data-todos", "step-start", "text"]
    assert [part["text"] for part in first["parts"] if part["type"] == "text"] == [LONG, DONE]
    assert tool_part(first)["state"] == "output-available"
    assert tool_part(first)["input"] == PLAN["input"]
    assert "Look" in tool_part(first)["output"]
    assert first["metadata"]["status"] == "completed"
    assert first["metadata"]["usage"]["turns"] == 2
    # The stored history equals the messages that the client has built.
    loaded = found["history"]["messages"]
    assert [message["role"] for message in loaded] == ["user", "assistant"] * 2
    assert [loaded[1], loaded[3]] == [first, second]
    # There is no run to resume.
    assert found["idle"]["messages"] == found["chat"]["messages"]


def test_a_cut_answer_is_whole_when_the_page_is_loaded_again(played: dict[str, Found]) -> None:
    found = played["cut"]

    assert found["broken"]["status"] == "error"
    partial = answer(found["broken"])
    assert partial["parts"][-1]["state"] == "streaming"
    assert [message["role"] for message in found["loaded"]["messages"]] == ["user"]
    assert found["reloaded"]["status"] == "ready"
    assert answer(found["reloaded"]) == answer(found["history"])
    assert answer(found["reloaded"])["id"] == partial["id"]


def test_an_answer_that_ends_before_it_is_resumed_is_loaded_again(
    played: dict[str, Found],
) -> None:
    found = played["endsBetween"]

    assert [message["role"] for message in found["loaded"]["messages"]] == ["user"]
    assert found["loaded"]["latest_run"]["status"] == "running"
    assert found["resumed"]["messages"] == found["loaded"]["messages"]
    assert answer(found["reloaded"]) == answer(found["history"])
    assert [part["text"] for part in answer(found["reloaded"])["parts"] if "text" in part] == [
        LONG,
        DONE,
    ]


def test_an_interrupted_answer_is_complete_after_reconnecting(
    played: dict[str, Found], version: int
) -> None:
    found = played["cutInPlace"]

    assert answer(found["broken"])["parts"][-1]["state"] == "streaming"
    assert found["chat"]["status"] == "ready"
    assert len(found["chat"]["messages"]) == 2
    if version == 5:
        # Version 5 appends the resumed text to its partial message; docs/guides/streams.md has a
        # workaround.
        assert kinds(answer(found["chat"])).count("text") == 3
    else:
        assert answer(found["chat"]) == answer(found["history"])


def test_a_call_runs_when_it_is_approved(played: dict[str, Found], version: int) -> None:
    found = played["approve"]

    assert tool_part(answer(found["waiting"]))["state"] == (
        "input-available" if version == 5 else "approval-requested"
    )
    if version > 5:
        # The page was loaded again before the decision.
        assert answer(found["again"]) == answer(found["waiting"])
    done = answer(found["chat"])
    assert tool_part(done)["state"] == "output-available"
    assert done["parts"][-1]["text"] == DONE
    assert done == answer(found["history"])
    assert len(found["chat"]["messages"]) == 2


def test_a_call_does_not_run_when_it_is_denied(played: dict[str, Found], version: int) -> None:
    found = played["deny"]

    done = answer(found["chat"])
    assert "data-todos" not in kinds(done)
    part = tool_part(done)
    if version == 5:
        assert (part["state"], part["errorText"]) == ("output-error", "not today")
    else:
        assert part["state"] == "output-denied"
        assert part["approval"]["approved"] is False
        assert part["approval"]["reason"] == "not today"
        # Version 6 has no field for the reason, so only the client has it.
        if version == 6:
            del part["approval"]["reason"]
    assert done == answer(found["history"])


def test_a_client_without_a_version_gets_one_that_it_understands(
    played: dict[str, Found], version: int
) -> None:
    if version == 5:
        return  # its clients name it, as docs/guides/streams.md says
    approved = answer(played["approve@nothing"]["chat"])
    assert tool_part(answer(played["approve@nothing"]["waiting"]))["state"] == "approval-requested"
    assert tool_part(approved)["state"] == "output-available"
    assert approved["metadata"]["aiSdkVersion"] == 6
    assert approved == answer(played["approve@nothing"]["history"])
    assert tool_part(answer(played["deny@nothing"]["chat"]))["state"] == "output-denied"
    cut = played["cut@nothing"]
    assert answer(cut["reloaded"]) == answer(cut["history"])


def test_the_sdks_own_user_agent_names_the_version(played: dict[str, Found], version: int) -> None:
    found = played["approve@agent"]
    assert answer(found["waiting"])["metadata"] == {"aiSdkVersion": version}
    assert tool_part(answer(found["chat"]))["state"] == "output-available"
    assert answer(found["chat"]) == answer(found["history"])


def test_a_failure_is_an_error_and_a_retry_continues(played: dict[str, Found]) -> None:
    failed, again = played["error"]["failed"], played["error"]["again"]

    assert failed["chat"]["status"] == "error"
    assert "cannot be read" in failed["chat"]["error"]
    assert failed["history"]["latest_run"]["status"] == "failed"

    assert again["chat"]["status"] == "ready"
    assert answer(again["chat"])["parts"][-1]["text"] == DONE
    assert answer(again["chat"]) == answer(again["history"])
    assert answer(again["chat"])["id"] == failed["history"]["latest_run"]["id"]


def test_cancelling_ends_the_answer(played: dict[str, Found], version: int) -> None:
    found = played["cancel"]

    assert found["cancelled"]["status"] == 200
    assert found["chat"]["status"] == "ready"
    assert answer(found["chat"])["metadata"] == {
        "aiSdkVersion": version,
        "status": "cancelled",
        "reason": "enough",
    }
    assert answer(found["chat"])["parts"][-1]["text"].startswith("word ")
    assert answer(found["chat"]) == answer(found["history"])


def test_a_refusal_reaches_the_person(played: dict[str, Found]) -> None:
    found = played["refused"]

    assert found["chat"]["status"] == "error"
    assert "POST /threads/{id}/uploads" in found["chat"]["error"]

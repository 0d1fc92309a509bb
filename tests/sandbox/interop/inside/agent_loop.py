"""An agent of deepagents sees a skill, reads its SKILL.md and runs its script after approval."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend
from deepagents.middleware.filesystem import FilesystemPermission
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from sandbox.interop.deepagents import LocalExecutionBackend
from tests.sandbox.places import reachable_directory

SKILL = """---
name: csv-totals
description: Adds up a column of a CSV file.
---
# How
Run `python3 /skills/csv-totals/scripts/total.py FILE COLUMN`.
"""
SCRIPT = """\
import csv, sys
with open(sys.argv[1]) as rows:
    print("total:", sum(int(row[sys.argv[2]]) for row in csv.DictReader(rows)))
"""
RUN = "python3 /skills/csv-totals/scripts/total.py data.csv amount"
ASK = {"allowed_decisions": ["approve", "reject"]}


class ScriptedModel(BaseChatModel):
    """Returns prepared replies, and records its requests."""

    answers: list[AIMessage]
    asked: list[list[BaseMessage]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.answers[len(self.asked) - 1])])


def call(name: str, number: int, **arguments: Any) -> AIMessage:
    made = {"name": name, "args": arguments, "id": f"call-{number}", "type": "tool_call"}
    return AIMessage(content="", tool_calls=[made])


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as path:
        scripts = path / "skills/csv-totals/scripts"
        scripts.mkdir(parents=True)
        (scripts / "total.py").write_text(SCRIPT)
        (scripts.parent / "SKILL.md").write_text(SKILL)
        for found in (path / "skills").rglob("*"):
            found.chmod(0o777)  # only the mount prevents commands from writing
        (path / "skills").chmod(0o777)
        yield path


@pytest.fixture(params=["composite", "alone"])
def backend(place: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """With a route of deepagents to the skills in a host directory, and without a route."""
    skills = place / "skills"
    own = LocalExecutionBackend(place / "root", timeout=20, skills_dir=skills)
    assert own.upload_files([(f"{own.root_dir}/data.csv", b"amount\n40\n2\n")])[0].error is None
    if request.param == "alone":
        yield own
    else:
        routed = FilesystemBackend(root_dir=skills, virtual_mode=True)
        yield CompositeBackend(default=own, routes={"/skills/": routed})
    own.close()


def agent_of(backend: Any, answers: list[AIMessage], **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(answers=answers, asked=[])
    agent = create_deep_agent(
        model=model,
        backend=backend,
        skills=["/skills/"],
        interrupt_on={"execute": ASK, "edit_file": ASK},
        checkpointer=InMemorySaver(),
        **options,
    )
    return agent, model


def tool_outputs(state: dict[str, Any]) -> list[str]:
    return [str(m.content) for m in state["messages"] if isinstance(m, ToolMessage)]


def test_read_a_skill_and_run_its_script(backend: Any) -> None:
    agent, model = agent_of(
        backend,
        [
            call("read_file", 1, file_path="/skills/csv-totals/SKILL.md"),
            call("execute", 2, command=RUN),
            AIMessage(content="The total is 42."),
        ],
    )
    thread = {"configurable": {"thread_id": "1"}}
    asked = agent.invoke({"messages": [("user", "Add up the amounts.")]}, thread)
    system = str(model.asked[0][0].content)
    assert "Adds up a column of a CSV file." in system
    assert "total.py" not in system  # only visible after reading the skill
    assert "scripts/total.py" in tool_outputs(asked)[0]
    (interrupt,) = asked["__interrupt__"]
    assert interrupt.value["action_requests"][0]["args"] == {"command": RUN}
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert "total: 42" in tool_outputs(done)[1]
    assert done["messages"][-1].content == "The total is 42."


def test_a_rejected_command_does_not_run(backend: Any, place: Path) -> None:
    agent, _ = agent_of(
        backend, [call("execute", 1, command="touch ran"), AIMessage(content="As you wish.")]
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Go.")]}, thread)
    done = agent.invoke(Command(resume={"decisions": [{"type": "reject"}]}), thread)
    assert done["messages"][-1].content == "As you wish."
    assert os.listdir(place / "root") == ["data.csv"]


def test_commands_cannot_write_the_skills(backend: Any, place: Path) -> None:
    agent, _ = agent_of(
        backend,
        [
            call("execute", 1, command="echo x >> /skills/csv-totals/SKILL.md"),
            AIMessage(content="No."),
        ],
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Go.")]}, thread)
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert "Read-only file system" in tool_outputs(done)[0]
    assert (place / "skills/csv-totals/SKILL.md").read_text() == SKILL


@pytest.mark.parametrize("backend", ["composite"], indirect=True)
def test_tools_cannot_write_skills_that_permissions_protect(backend: Any, place: Path) -> None:
    """deepagents' route itself is writable, unless a rule of deepagents denies it."""
    closed = FilesystemPermission(operations=["write"], paths=["/skills/**"], mode="deny")
    agent, _ = agent_of(
        backend,
        [
            call("write_file", 1, file_path="/skills/csv-totals/SKILL.md", content="evil"),
            AIMessage(content="No."),
        ],
        permissions=[closed],
    )
    thread = {"configurable": {"thread_id": "1"}}
    done = agent.invoke({"messages": [("user", "Go.")]}, thread)
    assert "permission denied" in tool_outputs(done)[0]
    assert (place / "skills/csv-totals/SKILL.md").read_text() == SKILL


def test_tools_write_the_root_and_commands_see_it(backend: Any, place: Path) -> None:
    path = str(place / "root/script.py")
    agent, _ = agent_of(
        backend,
        [
            call("write_file", 1, file_path=path, content="print('written')"),
            call("execute", 2, command="python3 script.py; sleep 30", timeout=1),
            AIMessage(content="Done."),
        ],
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Go.")]}, thread)
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    outputs = tool_outputs(done)[1]
    assert "written" in outputs
    assert "exit code 124" in outputs

"""An agent of deepagents sees a skill, reads its SKILL.md and runs its script after approval."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend
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
REPOSITORY = Path(__file__).resolve().parents[4]
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
    """With a route of deepagents to another directory of the host, and without a route."""
    skills = place / "skills"
    own = LocalExecutionBackend(place / "root", timeout=20, skills_dir=skills)
    assert own.upload_files([(f"{own.root_dir}/data.csv", b"amount\n40\n2\n")])[0].error is None
    if request.param == "alone":
        yield own
    else:
        (place / "memories").mkdir()
        routed = FilesystemBackend(root_dir=place / "memories", virtual_mode=True)
        yield CompositeBackend(default=own, routes={"/memories/": routed})
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


def test_tools_cannot_write_the_skills(backend: Any, place: Path) -> None:
    agent, _ = agent_of(
        backend,
        [
            call("write_file", 1, file_path="/skills/csv-totals/SKILL.md", content="evil"),
            AIMessage(content="No."),
        ],
    )
    thread = {"configurable": {"thread_id": "1"}}
    done = agent.invoke({"messages": [("user", "Go.")]}, thread)
    assert "Failed to write file" in tool_outputs(done)[0]
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


def test_a_long_output_is_a_file_that_the_agent_can_read(backend: Any, place: Path) -> None:
    """Otherwise deepagents leaves the whole text in the context, without an error."""
    agent, _ = agent_of(
        backend,
        [
            call("execute", 1, command="seq 1 100000"),
            call("read_file", 2, file_path="/large_tool_results/call-1", offset=99_990),
            call("grep", 3, pattern="77777", path="/large_tool_results", output_mode="content"),
            call("execute", 4, command="tail -n 3 /large_tool_results/call-1"),
            AIMessage(content="Done."),
        ],
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Go.")]}, thread)
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    stored, page, found, tail = tool_outputs(done)
    assert "/large_tool_results/call-1" in stored
    assert len(stored) < 20_000
    assert "100000" in page
    assert "77777" in found
    assert "100000" in tail
    assert os.listdir(place / "root") == ["data.csv"]


def example_of_the_documentation(place: Path, model: ScriptedModel) -> Any:
    """Return the agent of docs/guides/interop.md, with the test's directories and model."""
    document = (REPOSITORY / "docs/guides/interop.md").read_text()
    (code,) = re.findall(r"```python\n(from deepagents import .*?)```", document, re.DOTALL)
    code = code.replace("/srv/", f"{place}/").replace('"anthropic:claude-sonnet-4-6"', "model")
    names = {"model": model}
    exec(code, names)
    return names["agent"]


def test_the_example_of_the_documentation_tells_the_model_its_directories(place: Path) -> None:
    root = place / "project"
    model = ScriptedModel(
        answers=[
            call("write_file", 1, file_path=f"{root}/data.csv", content="amount\n40\n2\n"),
            call("task", 2, description="Look.", subagent_type="general-purpose"),
            AIMessage(content="I looked."),
            call("execute", 3, command=RUN),
            AIMessage(content="The total is 42."),
        ],
        asked=[],
    )
    agent = example_of_the_documentation(place, model)
    thread = {"configurable": {"thread_id": "1"}}
    asked = agent.invoke({"messages": [("user", "Add up the amounts.")]}, thread)
    for request in (model.asked[0], model.asked[2]):  # of the agent, and of its subagent
        system = str(request[0].content)
        assert f"the file notes.md in the working directory is {root}/notes.md" in system
        assert "Adds up a column of a CSV file." in system
        assert "not accessible from the shell" not in system
    (interrupt,) = asked["__interrupt__"]
    assert interrupt.value["action_requests"][0]["args"] == {"command": RUN}
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert "total: 42" in tool_outputs(done)[-1]


def test_builtin_skills_of_vel_work(place: Path) -> None:
    """Their paths start with /sandbox/skills."""
    shutil.copytree(REPOSITORY / "skills_app/builtin", place / "builtin")
    texts = [path.read_text() for path in (place / "builtin").rglob("*.md")]
    named = sorted(
        {path for text in texts for path in re.findall(r"/sandbox/skills/[\w./-]+", text)}
    )
    assert len(named) > 15
    backend = LocalExecutionBackend(place / "root", skills_dir=place / "builtin")
    tests = "; ".join(f"test -e {path.rstrip('.')} || echo {path}" for path in named)
    assert backend.execute(tests).output == ""
    run = "python3 /sandbox/skills/csv-analytics/scripts/profile_csv.py data.csv"
    agent, model = agent_of(
        backend,
        [
            call("write_file", 1, file_path=f"{place}/root/data.csv", content="amount\n40\n2\n"),
            call("execute", 2, command=run),
            AIMessage(content="Done."),
        ],
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Go.")]}, thread)
    done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    system = str(model.asked[0][0].content)
    for package in (place / "builtin").iterdir():
        assert f"/skills/{package.name}/SKILL.md" in system
    assert "exit code 0" in tool_outputs(done)[1]
    assert "amount" in tool_outputs(done)[1]
    backend.close()

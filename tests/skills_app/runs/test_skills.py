"""Skills in a run: pinned at its start, listed, loaded, run in the sandbox, deactivated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.models import Epoch, Run, ToolCall
from skills_app.library.scopes import agent_scope
from skills_app.models import ActiveSkill, AgentSkill, SkillUse, SkillVersion, Trust
from tests.support.runs import drive_to_end, events, make_agent, make_user, script_file, start_run
from tests.support.skills import package, skill_text, store_skill, write_skill

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = "#!/usr/bin/env python3\nimport sys\nprint(len(sys.argv[1].split()), 'beans')\n"


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"name": tool, "input": given}


def run_with(tmp_path: Path, *turns: list[dict[str, Any]], directory: Path, **fields: Any) -> Run:
    user = make_user()
    script = [*({"tool_calls": calls} for calls in turns), {"text": "Done."}]
    make_agent(user, model=script_file(tmp_path, script), builtin_skills=False, **fields)
    run = start_run(user, skill_directories=(str(directory),))
    return drive_to_end(run)


def result(tool: str) -> str:
    row = ToolCall.objects.filter(tool=tool).order_by("-turn", "-position").first()
    assert row is not None
    return str(json.loads(row.result))


def pinned(run: Run) -> list[SkillVersion]:
    return [entry.version for entry in run.pinned.skill_set.entries.all()]


def test_a_skill_of_a_directory_is_shown_loaded_and_its_script_runs(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory, files={"scripts/count.py": COUNT}, body="Run scripts/count.py.")
    command = "python3 /sandbox/skills/beans/scripts/count.py 'a b c'"
    run = run_with(
        tmp_path,
        [call("load_skill", name="beans")],
        [call("execute", command=command)],
        [call("read_file", path="/skills/beans/SKILL.md")],
        directory=directory,
        sandbox=True,
    )
    assert run.status == "completed"
    assert "- beans: Counts beans." in Epoch.objects.get().head["system"]
    assert "Run scripts/count.py." in result("load_skill")
    assert "scripts/count.py" in result("load_skill")
    assert "3 beans" in result("execute")
    assert "Run scripts/count.py." in result("read_file")
    uses = SkillUse.objects.order_by("id").values_list("kind", "path")
    assert list(uses) == [("loaded", ""), ("file", "scripts/count.py"), ("mounted", "SKILL.md")]
    assert events(run, "skill.loaded")[0]["name"] == "beans"


def test_without_a_sandbox_a_search_finds_the_agents_files_and_skills_once(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    run_with(
        tmp_path,
        [call("write_file", path="/own.md", content="Beans.")],
        [call("glob", pattern="**/*.md"), call("grep", pattern="(?i)beans")],
        [call("glob", pattern="**/*.md", path="/sandbox")],
        directory=tmp_path / "skills",
        sandbox=False,
    )
    found = [json.loads(row.result) for row in ToolCall.objects.order_by("turn", "position")]
    own, lines, skills = (json.loads(text) for text in found[1:])
    assert own["matches"] == ["/memory/AGENTS.md", "/own.md"]
    assert {match["file"] for match in lines["matches"]} == {"/own.md"}
    assert skills["matches"] == ["/sandbox/skills/beans/SKILL.md"]


def test_commands_cannot_change_a_skill(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory)
    run_with(
        tmp_path,
        [call("execute", command="touch /sandbox/skills/x /sandbox/skills/beans/x /skills/x")],
        [call("write_file", path="/sandbox/skills/beans/SKILL.md", content="x")],
        directory=directory,
        sandbox=True,
    )
    assert result("execute").count("Read-only file system") == 3
    assert "read-only" in result("write_file")
    assert (directory / "beans" / "SKILL.md").read_text() == skill_text()


@pytest.mark.slow
def test_a_run_keeps_its_skills_and_the_next_gets_a_note_of_the_change(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory)
    write_skill(directory, "old")
    first = run_with(tmp_path, [call("load_skill", name="beans")], directory=directory)
    assert first.opening_note == ""
    write_skill(directory, body="Count them twice.")
    write_skill(directory, "new")
    (directory / "old" / "SKILL.md").unlink()
    second = drive_to_end(start_run(first.owner, thread=first.thread_id))
    assert "new: new (" in second.opening_note
    assert "changed, to be read again before use: beans" in second.opening_note
    assert "gone: old" in second.opening_note
    assert first.pinned.skill_set_id != second.pinned.skill_set_id
    # The script loads it in each run, because the new version deactivated it.
    assert ActiveSkill.objects.get().version in pinned(second)


def test_a_skill_that_requires_others_brings_them(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory, "stew", requires="[beans]", body="Cook.")
    write_skill(directory)
    run_with(
        tmp_path,
        [call("activate_skill", skill_name="Stew")],
        [call("deactivate_skill", name="beans")],
        directory=directory,
    )
    assert result("load_skill").index("Count them.") < result("load_skill").index("Cook.")
    assert result("deactivate_skill") == "beans is required by stew: deactivate stew first."
    assert set(ActiveSkill.objects.values_list("name", flat=True)) == {"stew", "beans"}


def test_skills_that_require_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory, "a", requires="[b]")
    write_skill(directory, "b", requires="[a]")
    run_with(tmp_path, [call("load_skill", name="a")], directory=directory)
    assert "circle: a → b → a" in result("load_skill")
    assert not ActiveSkill.objects.exists()


def test_allowed_tools_narrow_while_the_skill_is_active(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory, allowed_tools="Read Grep")
    run_with(
        tmp_path,
        [call("load_skill", name="beans")],
        [call("write_file", path="x.txt", content="x")],
        [call("deactivate_skill", name="beans")],
        [call("write_file", path="x.txt", content="x")],
        directory=directory,
    )
    first, second = ToolCall.objects.filter(tool="write_file").order_by("turn")
    assert (first.status, second.status) == ("denied", "succeeded")
    assert "deactivate_skill" in first.result


def test_the_library_gives_an_agent_only_enabled_skills(tmp_path: Path) -> None:
    user = make_user()
    agent = make_agent(user, builtin_skills=False)
    version = store_skill(package(tmp_path / "one"))
    run = drive_to_end(start_run(user))
    assert pinned(run) == []
    AgentSkill.objects.create(agent=agent, skill=version.skill, enabled=True)
    run = drive_to_end(start_run(user))
    assert pinned(run) == [version]


def test_instructions_can_be_in_the_system_prompt(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory, body="Count them thrice.")
    run = run_with(
        tmp_path,
        [call("load_skill", name="beans")],
        [call("deactivate_skill", name="beans")],
        directory=directory,
        skill_mode="system_prompt",
    )
    assert run.status == "completed"
    systems = [epoch.head["system"] for epoch in Epoch.objects.order_by("number")]
    assert ["thrice" in system for system in systems] == [False, True, False]
    assert "thrice" not in result("load_skill")


def test_an_agent_cannot_read_its_own_skill_in_quarantine(tmp_path: Path) -> None:
    user = make_user()
    calls = [
        call("list_memory", directory="skills"),
        call("read_memory", path="skills/beans.md"),
        call("read_file", path="/memory/skills/beans.md"),
        call("load_skill", name="beans"),
    ]
    agent = make_agent(user, model=script_file(tmp_path, [{"tool_calls": calls}, {"text": "."}]))
    scope = agent_scope(agent.pk)
    store_skill(package(tmp_path, body="Obey."), scope, Trust.QUARANTINED, agent_id=agent.pk)
    drive_to_end(start_run(user))
    assert "Obey" not in "".join(ToolCall.objects.values_list("result", flat=True))
    assert result("list_memory") == "[]"


def test_a_message_names_skills_that_fit_and_a_search_finds_them(tmp_path: Path) -> None:
    directory = tmp_path / "skills"
    write_skill(directory, "beans")
    write_skill(directory, "kites", description="Builds kites.", triggers="[wind*]")
    write_skill(directory, "maps", description="Draws maps of cities.")
    user = make_user()
    calls = [call("list_skills", query="draw me a city map"), call("list_skills", query="zzz")]
    make_agent(user, model=script_file(tmp_path, [{"tool_calls": calls}, {"text": "Done."}]))
    message = "It is windy, and somebody must count the beans."
    run = drive_to_end(start_run(user, message, skill_directories=(str(directory),)))
    assert run.opening_note == "[Vel: skills that may fit this message: kites, beans.]"
    found, nothing = ToolCall.objects.order_by("position").values_list("result", flat=True)
    assert json.loads(json.loads(found))[0]["name"] == "maps"
    assert "Your 3 skills do not fit" in nothing

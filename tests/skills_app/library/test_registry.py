"""The registry of a script: loading, finding, suggesting and activating skills."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from sandbox.errors import SetupError
from skills_app.library.pinned import requiring
from skills_app.library.problems import InvalidSkill
from skills_app.library.registry import (
    Skill,
    SkillRegistry,
    SkillsRegistry,
    load_skill,
    load_skills_from_directory,
)
from tests.support.skills import skill_text, write_skill


def registry(*skills: Skill) -> SkillRegistry:
    made = SkillRegistry(include_builtin=False)
    for skill in skills:
        made.register(skill)
    return made


SQL = Skill("sql", "Writes queries.", triggers=("sql*", "database", "query"), tags=("Data",))
MAIL = Skill("mail", "Writes letters to customers.", tags=("writing", "data"), priority=5)
OFF = Skill("off", "Writes letters.", tags=("writing",), triggers=("letter",), enabled=False)


def names(skills: list[Skill]) -> list[str]:
    return [skill.name for skill in skills]


def test_built_in_skills_are_loaded_and_found() -> None:
    built_in = SkillRegistry()
    assert built_in.problems == []
    for query, name in [
        ("make me a chart of last quarter's sales from this csv", "csv-analytics"),
        ("fill in this tax form", "pdf-processing"),
        ("who needs to sign off on a 12k purchase?", "decision-workflow"),
        ("how many orders are in the sqlite database", "data-query"),
        ("compare the vendors and cite your sources", "research"),
        ("write the executive summary for the board", "reporting"),
    ]:
        found = built_in.find_skill(query)
        assert found is not None
        assert found.name == name
    assert built_in.find_skill("bake a chocolate cake") is None


def test_directories_are_loaded_and_problems_are_reported(tmp_path: Path) -> None:
    write_skill(tmp_path, "beans")
    write_skill(tmp_path, "deep/peas", text=skill_text("peas"))
    (write_skill(tmp_path, "broken") / "SKILL.md").write_text("no head")
    (tmp_path / "link").symlink_to(tmp_path / "beans")
    loaded = SkillRegistry([str(tmp_path)], include_builtin=False)
    assert sorted(names(loaded.list())) == ["beans", "peas"]
    told = {Path(problem.path).relative_to(tmp_path).parts[0] for problem in loaded.problems}
    assert told == {"broken", "link"}
    assert names(load_skills_from_directory(tmp_path)) == names(loaded.list())


def test_a_missing_directory_is_a_problem(tmp_path: Path) -> None:
    loaded = SkillRegistry([tmp_path / "nowhere"], include_builtin=False)
    assert loaded.list() == []
    assert "nowhere" in str(loaded.problems[0])


def test_of_two_directories_the_first_keeps_a_name_but_built_in_skills_are_replaced(
    tmp_path: Path,
) -> None:
    write_skill(tmp_path / "one", "research", description="Replaces.")
    write_skill(tmp_path / "one", "beans", description="One.")
    write_skill(tmp_path / "two", "beans", description="Two.")
    loaded = SkillRegistry([tmp_path / "one", tmp_path / "two"])
    assert loaded.get("beans").description == "One."  # type: ignore[union-attr]
    assert loaded.get("research").description == "Replaces."  # type: ignore[union-attr]
    assert [problem.code for problem in loaded.problems] == ["name_taken"]
    loaded.register(Skill("Beans", "Three."))
    assert loaded.get("beans").description == "Three."  # type: ignore[union-attr]
    assert names(loaded.registered()) == ["beans"]
    with pytest.raises(InvalidSkill, match="not a name"):
        loaded.register(Skill("!!!", "None."))


def test_names_as_people_write_them(tmp_path: Path) -> None:
    made = registry(Skill("PDF Processing", "Reads."))
    assert made.get("pdf-processing") is made.get("PDF Processing") is not None
    assert made.get("nothing") is None
    assert SkillsRegistry is SkillRegistry


def test_a_listing_marks_disabled_skills() -> None:
    made = registry(SQL, OFF)
    assert made.list_skills() == [
        {"name": "sql", "description": "Writes queries.", "tags": ["Data"], "enabled": True},
        {"name": "off", "description": "Writes letters.", "tags": ["writing"], "enabled": False},
    ]


def test_search_is_best_first_and_finds_parts_of_words() -> None:
    made = registry(SQL, MAIL, OFF)
    assert names(made.search("a polite letter")) == ["mail"]
    assert names(made.search("quer")) == ["sql"]
    assert names(made.search("ritin")) == ["mail"]
    assert made.search("bake a cake") == []
    assert names(made.search("")) == names(made.search(" \n")) == ["sql", "mail"]
    assert list(made.scores("queries")) == ["sql", "mail"]


def test_the_threshold_counts() -> None:
    made = registry(SQL, MAIL)
    score = made.scores("write a letter")["mail"]
    assert made.find_skill("write a letter", threshold=score) is MAIL
    assert made.find_skill("write a letter", threshold=score + 0.001) is None
    assert made.find_skill("bake a cake", threshold=0.0) is None
    assert MAIL.matches_query("write a letter") == score
    assert registry().find_skill("anything") is None


def test_tags_in_any_case() -> None:
    made = registry(SQL, MAIL, OFF)
    assert names(made.find_skills_by_tag("DATA")) == ["sql", "mail"]
    assert names(made.find_skills_by_tag("writing")) == ["mail"]
    assert made.find_skills_by_tag("dat") == []


def test_triggers() -> None:
    made = registry(SQL, MAIL, OFF)
    assert names(made.match_triggers("help with SQL queries")) == ["sql"]
    assert made.match_triggers("a letter") == []
    both = registry(SQL, Skill("first", "x", triggers=("help*queries",), priority=1))
    assert names(both.match_triggers("Help with sql queries")) == ["first", "sql"]


def test_active_skills_are_in_the_order_of_activation() -> None:
    made = registry(SQL, MAIL, OFF)
    assert made.activate("mail")
    assert made.activate("sql")
    assert made.activate("Mail")
    assert names(made.get_active()) == ["mail", "sql"]
    assert not made.activate("off")
    assert not made.activate("nothing")
    assert made.deactivate("mail")
    assert not made.deactivate("mail")
    assert names(made.get_active()) == ["sql"]


def test_a_skill_has_the_values_of_its_package(tmp_path: Path) -> None:
    folder = write_skill(
        tmp_path,
        "beans",
        {"references/b.md": "B\n", "a.md": "A\n", "scripts/count.py": "#!x", "data.csv": "1"},
        title="Beans!",
        version="2.1",
        author="Jo",
        tags="[Food]",
        triggers='["bean*"]',
        requires="[peas]",
        tools_required="[execute]",
        priority="7",
        enabled="false",
    )
    for path in (folder, folder / "SKILL.md"):
        skill = load_skill(path)
        assert skill.path == skill.source_path == folder / "SKILL.md"
    assert (skill.version, skill.author, skill.title) == ("2.1", "Jo", "Beans!")
    assert (skill.tags, skill.triggers, skill.requires) == (("Food",), ("bean*",), ("peas",))
    assert (skill.tools_required, skill.priority, skill.enabled) == (("execute",), 7, False)
    assert skill.get_full_context() == (
        "# Skill: beans\n\nCount them.\n\n## a.md\n\nA\n\n## references/b.md\n\nB"
    )


def test_the_context_is_limited_and_lists_missing_parts(tmp_path: Path, settings: Settings) -> None:
    settings.VEL_SKILLS = {"CONTEXT_BYTES": 200}
    files = {"a.md": "ä" * 200, "b.md": "small"}
    skill = load_skill(write_skill(tmp_path, "beans", files))
    context = skill.get_full_context()
    assert "## b.md\n\nsmall" in context
    assert "ä" not in context
    assert context.endswith("[Left out, as there is no room: a.md (409 bytes). Read the files.]")
    long = Skill("long", "x", content="line\n" * 100)
    context = long.get_full_context()
    assert len(context.encode()) < 350
    assert "bytes of SKILL.md" in context


def test_a_bad_package_reports_all_problems(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "beans", description="")
    (folder / "out").symlink_to("/etc/passwd")
    with pytest.raises(InvalidSkill) as refusal:
        load_skill(folder)
    assert len(refusal.value.problems) > 1


@pytest.mark.slow
def test_a_script_needs_no_settings_and_no_database(tmp_path: Path) -> None:
    write_skill(tmp_path, "beans")
    code = (
        "import sys; from skills_app.library.registry import SkillRegistry; "
        f"r = SkillRegistry([{str(tmp_path)!r}]); print(r.find_skill('count my beans').name); "
        "print('django.db.models' in sys.modules)"
    )
    clean = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean
    )
    assert done.stdout.split() == ["beans", "False"]


def test_a_skill_is_activated_with_its_requirements_and_circles_are_refused(tmp_path: Path) -> None:
    write_skill(tmp_path, "stew", requires="[beans]")
    write_skill(tmp_path, "beans")
    write_skill(tmp_path, "hen", requires="[egg]")
    write_skill(tmp_path, "egg", requires="[hen]")
    write_skill(tmp_path, "orphan", requires="[gone]")
    registry = SkillRegistry([tmp_path], include_builtin=False)
    assert [registry.activate(name) for name in ("stew", "hen", "orphan")] == [True, False, False]
    assert [skill.name for skill in registry.get_active()] == ["beans", "stew"]


def test_a_required_skill_stays_active_as_long_as_the_skill_that_requires_it() -> None:
    made = registry(Skill("beans", "Counts."), Skill("stew", "Cooks.", requires=("beans",)))
    assert made.activate("stew")
    assert not made.deactivate("beans")
    assert names(made.get_active()) == ["beans", "stew"]
    assert made.deactivate("stew")
    assert made.deactivate("beans")
    assert made.activate("stew")
    made.deactivate_all()
    assert made.get_active() == []


def test_skills_that_require_each_other_do_not_keep_each_other_active() -> None:
    circle = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["c"], "e": ["e"]}
    assert [requiring(name, circle) for name in "abcde"] == [[], [], ["d"], [], []]


def test_a_skill_that_cannot_be_loaded_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("---\nname: [\n---\n", encoding="utf-8")
    SkillRegistry([tmp_path], include_builtin=False)
    assert "A skill was left out:" in caplog.text
    assert str(tmp_path / "bad" / "SKILL.md") in caplog.text
    caplog.clear()
    SkillRegistry([tmp_path / "nowhere"], include_builtin=False)
    assert "nowhere" in caplog.text


def test_a_dictionary_of_the_fields_of_a_skill_is_registered() -> None:
    made = SkillRegistry(include_builtin=False)
    made.register({"name": "Sql", "description": "Writes queries.", "tags": ["data"]})
    assert made.get("sql") == Skill("sql", "Writes queries.", tags=("data",))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "a", "description": "b", "colour": "red"}, "'colour'"),
        ({"name": "a"}, "'description' is missing"),
        ({"name": "a", "description": "b", "priority": "high"}, "priority must be a whole number"),
        ({"name": "a", "description": "b", 5: "c"}, "no field 5"),
    ],
)
def test_a_wrong_field_of_a_dictionary_is_named(fields: dict[str, object], field: str) -> None:
    made = SkillRegistry(include_builtin=False)
    with pytest.raises(SetupError, match=field):
        made.register(fields)
    assert made.list() == []


@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("find_skill", "query"),
        ("search", "query"),
        ("scores", "query"),
        ("get", "name"),
        ("activate", "name"),
        ("deactivate", "name"),
        ("find_skills_by_tag", "tag"),
        ("match_triggers", "text"),
    ],
)
@pytest.mark.parametrize("value", [None, 5, b"sql"])
def test_a_value_that_is_no_text_is_refused_with_the_name_of_the_argument(
    method: str, argument: str, value: object
) -> None:
    with pytest.raises(SetupError, match=f"^{argument} must be a text, got "):
        getattr(registry(SQL), method)(value)


def test_a_threshold_that_is_no_number_is_refused() -> None:
    with pytest.raises(SetupError, match="threshold must be a number, got 'high'"):
        registry(SQL).find_skill("sql", "high")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "code", "part"),
    [
        ("priority: high", "priority", "priority is not a whole number"),
        ("priority: 3.7", "priority", "priority is not a whole number"),
        ("triggers: [ship, 5]", "triggers", "The trigger 5 is not a text"),
        ("triggers: 5", "triggers", "The trigger 5 is not a text"),
        ("triggers: [no]", "triggers", "The trigger no is not a text"),
        ("tags: {a: b}", "tags", "tags is not a list of texts"),
    ],
)
def test_a_value_that_is_not_used_as_written_is_a_problem(
    tmp_path: Path, field: str, code: str, part: str
) -> None:
    write_skill(tmp_path, "ship", text=f"---\nname: ship\ndescription: d\n{field}\n---\nBody\n")
    made = SkillRegistry([tmp_path], include_builtin=False)
    (problem,) = made.problems
    assert (problem.severity, problem.code) == ("warning", code)
    assert part in problem.message
    assert problem.path == str(tmp_path / "ship" / "SKILL.md")
    assert names(made.list()) == ["ship"]


def test_values_that_are_used_as_written_are_no_problem(tmp_path: Path) -> None:
    head = "name: ship\ndescription: d\npriority: 3\ntriggers: [a, '5', \"no\"]\ntags: [b]"
    write_skill(tmp_path, "ship", text=f"---\n{head}\n---\nBody\n")
    made = SkillRegistry([tmp_path], include_builtin=False)
    assert made.problems == []
    assert made.list()[0].triggers == ("a", "5", "no")

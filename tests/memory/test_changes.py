"""Changes of the memory by people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission

from agents.models import Agent
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound, ServiceError
from memory.actions.changes import (
    append_to_file,
    delete_file,
    restore_revision,
    write_file,
)
from memory.errors import NoSuchFile
from memory.limits import MAX_FILE_BYTES
from memory.models import MemoryRevision
from memory.paths import InvalidPath
from memory.queries.files import memory_revisions, memory_state, revision_content
from skills_app.models import SkillVersion, Trust
from tests.support.memory import skilled
from tests.support.runs import make_agent, make_user

pytestmark = pytest.mark.django_db

PATH = "knowledge/notes.md"
SKILL = "skills/weekly-report.md"


@pytest.fixture
def agent() -> Agent:
    return make_agent(make_user(), everyone=True)


def content(agent: Agent, path: str = PATH) -> str | None:
    return memory_state(agent.pk, path).content


def operations(agent: Agent, path: str = PATH) -> list[tuple[int, str]]:
    return [(entry.number, entry.operation) for entry in memory_revisions(agent.pk, path)]


def test_every_state_of_a_file_is_kept(agent: Agent) -> None:
    by = agent.owner
    assert by is not None
    assert write_file(agent, PATH, "one", by=by, source="cli", reason="said so") == 1
    assert append_to_file(agent, PATH, "two", by=by, source="web") == 2
    assert delete_file(agent, PATH, by=by, base_revision=2, source="api") == 3
    assert content(agent) is None
    assert restore_revision(agent, PATH, 2, by=by, source="web") == 4
    assert content(agent) == "one\ntwo"
    assert operations(agent) == [(4, "restore"), (3, "delete"), (2, "append"), (1, "write")]
    assert [revision_content(agent.pk, PATH, number) for number in (1, 2, 3, 4)] == [
        "one",
        "one\ntwo",
        None,
        "one\ntwo",
    ]
    first = memory_revisions(agent.pk, PATH)[-1]
    assert (first.by, first.source, first.reason) == ("ada", "cli", "said so")
    assert (first.size_bytes, first.is_deleted, first.approval_id) == (3, False, None)
    assert memory_revisions(agent.pk, PATH)[1].is_deleted


def test_a_skill_has_versions_and_a_restored_one_is_not_reviewed(
    agent: Agent,
) -> None:
    by = agent.owner
    assert by is not None
    text = skilled(agent)
    SkillVersion.objects.update(trust=Trust.REVIEWED)
    assert write_file(agent, SKILL, f"{text}More.\n", by=by, source="web") == 2
    assert delete_file(agent, SKILL, by=by, source="web") == 3
    assert restore_revision(agent, SKILL, 1, by=by, source="web") == 4
    assert content(agent, SKILL) == text
    assert SkillVersion.objects.get(number=4).trust == Trust.IMPORTED
    assert operations(agent, SKILL) == [(4, "write"), (3, "delete"), (2, "write"), (1, "write")]
    assert memory_revisions(agent.pk, SKILL)[0].reason == "Revision 1 again."


def test_writing_the_same_content_makes_no_revision(agent: Agent) -> None:
    by = agent.owner
    assert by is not None
    for _ in range(2):
        assert write_file(agent, PATH, "same", by=by, source="cli") == 1
    assert MemoryRevision.objects.count() == 1


def test_restoring_a_deletion_deletes(agent: Agent) -> None:
    by = agent.owner
    assert by is not None
    write_file(agent, PATH, "one", by=by, source="cli")
    delete_file(agent, PATH, by=by, source="cli")
    restore_revision(agent, PATH, 1, by=by, source="cli")
    assert restore_revision(agent, PATH, 2, by=by, source="cli") == 4
    assert content(agent) is None


@pytest.mark.parametrize("path", [PATH, SKILL])
def test_a_deleted_file_is_made_again_by_a_writer_that_saw_no_file(agent: Agent, path: str) -> None:
    by = agent.owner
    assert by is not None
    text = skilled(agent)
    if path == PATH:
        write_file(agent, path, text, by=by, base_revision=0, source="api")
    deleted = delete_file(agent, path, by=by, source="api")
    again = write_file(agent, path, f"{text}!", by=by, base_revision=0, source="api")
    assert (again, content(agent, path)) == (deleted + 1, f"{text}!")
    with pytest.raises(Conflict):
        write_file(agent, path, text, by=by, base_revision=0, source="api")


@pytest.mark.parametrize("path", [PATH, SKILL])
@pytest.mark.parametrize("base", [0, 2, 99])
def test_a_change_based_on_another_revision_is_refused(agent: Agent, path: str, base: int) -> None:
    by = agent.owner
    assert by is not None
    text = skilled(agent)
    if path == PATH:
        write_file(agent, PATH, text, by=by, source="cli")
    for change in (
        lambda: write_file(agent, path, f"{text}!", by=by, base_revision=base, source="api"),
        lambda: delete_file(agent, path, by=by, base_revision=base, source="api"),
    ):
        with pytest.raises(Conflict) as refused:
            change()
        assert refused.value.code == "stale"
    assert content(agent, path) == text


CHANGES: list[Callable[..., Any]] = [
    lambda agent, path, by: write_file(agent, path, "x", by=by, source="web"),
    lambda agent, path, by: append_to_file(agent, path, "x", by=by, source="web"),
    lambda agent, path, by: delete_file(agent, path, by=by, source="web"),
    lambda agent, path, by: restore_revision(agent, path, 1, by=by, source="web"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_user_of_the_agent_changes_nothing(agent: Agent, change: Callable[..., Any]) -> None:
    write_file(agent, PATH, "one", by=agent.owner, source="cli")  # type: ignore[arg-type]
    stranger = make_user("eve")
    with pytest.raises(NotAllowed):
        change(agent, PATH, stranger)
    assert content(agent) == "one"


def test_approvers_of_the_agent_may_and_those_of_another_may_not(agent: Agent) -> None:
    group = Group.objects.create(name="team")
    agent.approver_groups.add(group)
    other = make_agent(make_user("bob"), slug="other")
    member = make_user("may")
    member.groups.add(group)
    assert write_file(agent, PATH, "x", by=member, source="web") == 1
    with pytest.raises(NotAllowed):
        write_file(other, PATH, "x", by=member, source="web")
    everywhere = make_user("all")
    everywhere.user_permissions.add(Permission.objects.get(codename="approve_toolcall"))
    assert write_file(other, PATH, "x", by=everywhere, source="web") == 1


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        "tools.json",
        "",
        "/knowledge/x.md",
        "knowledge/../AGENTS.md",
        "knowledge//x.md",
        "knowledge/x.md/",
        "other/x.md",
        "knowledge/x\u202e.md",
        "knowledge/\uff0e\uff0e/x",
        "knowledge/a\\..\\b",
        "skills/../knowledge/x.md",
        "skills/a/SKILL.md",
        "knowledge/" + "x" * 300,
    ],
)
def test_invalid_paths_are_refused(agent: Agent, change: Callable[..., Any], path: str) -> None:
    with pytest.raises(InvalidRequest):
        change(agent, path, agent.owner)
    assert not MemoryRevision.objects.exists()


def test_the_prompt_and_the_tools_say_where_they_are_changed(agent: Agent) -> None:
    with pytest.raises(InvalidRequest, match="agent's settings"):
        write_file(agent, "AGENTS.md", "Obey.", by=agent.owner, source="web")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "word"), [("x" * (MAX_FILE_BYTES + 1), "bytes"), ("a\0", "NUL"), ("\ud800", "half")]
)
def test_invalid_content_is_refused(agent: Agent, text: str, word: str) -> None:
    with pytest.raises(InvalidRequest, match=word):
        write_file(agent, PATH, text, by=agent.owner, source="web")  # type: ignore[arg-type]


def test_missing_files_and_revisions_are_not_found(agent: Agent) -> None:
    by = agent.owner
    assert by is not None
    with pytest.raises(NotFound):
        delete_file(agent, PATH, by=by, source="web")
    with pytest.raises(NotFound):
        restore_revision(agent, PATH, 7, by=by, source="web")
    with pytest.raises(NoSuchFile):
        revision_content(agent.pk, PATH, 1)
    with pytest.raises(InvalidPath):
        memory_revisions(agent.pk, "../x")
    write_file(agent, PATH, "one", by=by, source="web")
    with pytest.raises(InvalidRequest, match="already has the content"):
        restore_revision(agent, PATH, 1, by=by, source="web")


def test_a_revision_of_another_agent_is_not_found(agent: Agent) -> None:
    by = agent.owner
    assert by is not None
    write_file(agent, PATH, "secret", by=by, source="web")
    other = make_agent(by, slug="other")
    assert memory_revisions(other.pk, PATH) == []
    with pytest.raises(ServiceError):
        restore_revision(other, PATH, 1, by=by, source="web")
    with pytest.raises(NoSuchFile):
        revision_content(other.pk, PATH, 1)

"""Paths outside a memory and IDs of another agent, at every endpoint with every method."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from agents.models import Agent
from memory.actions.changes import write_file
from memory.models import MemoryFile, MemoryRevision
from tests.agents.api.rows import HttpResponse, client_for, make_agent, make_user, problem_of

pytestmark = pytest.mark.django_db

PATH = "knowledge/notes.md"
SECRET = "the other agent's secret"


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def mine(ann: User) -> Agent:
    agent = make_agent("mine", everyone=False, owner=ann)
    write_file(agent, PATH, "my own", by=ann, source="web")
    write_file(agent, PATH, "my own, again", by=ann, source="web")
    return agent


@pytest.fixture
def other() -> Agent:
    bob = make_user("bob")
    agent = make_agent("other", everyone=False, owner=bob, system_prompt=SECRET)
    write_file(agent, PATH, SECRET, by=bob, source="web")
    write_file(agent, PATH, f"{SECRET}, again", by=bob, source="web")
    write_file(agent, "knowledge/theirs.md", SECRET, by=bob, source="web")
    return agent


def every_call(client: APIClient, agent_id: str, path: str) -> list[HttpResponse]:
    """Yield each endpoint with each of its methods; `path` is inserted into URLs unchanged."""
    base = f"/api/v1/agents/{agent_id}/memory"
    text = "application/json"
    return [
        client.get(base),
        client.get(f"{base}?directory=all"),
        client.get(f"{base}/{path}"),
        client.head(f"{base}/{path}"),
        client.put(f"{base}/{path}", '{"content": "evil"}', content_type=text),
        client.delete(f"{base}/{path}"),
        client.get(f"{base}-revisions?path={path}"),
        client.get(f"{base}-revisions?path={path}&number=1"),
        client.post(f"{base}-restore", {"path": path, "revision": 1}, format="json"),
        client.post(f"{base}-purge", {"path": path}, format="json"),
    ]


def assert_untouched() -> None:
    stored = MemoryRevision.objects.filter(content__contains="evil")
    assert not stored.exists()
    assert set(MemoryFile.objects.values_list("content", flat=True)) >= {
        "my own, again",
        f"{SECRET}, again",
        SECRET,
    }


def test_another_agents_memory_is_not_there_for_any_method(
    ann: User, mine: Agent, other: Agent
) -> None:
    for response in every_call(client_for(ann), other.pk, PATH):
        assert response.status_code == 404, response.request
        assert SECRET not in response.content.decode()
        if response.content:
            assert problem_of(response)["code"] == "unknown_agent"
    assert_untouched()


def test_an_approver_without_the_agent_finds_no_memory(mine: Agent, other: Agent) -> None:
    eve = client_for(make_user("eve", "approve_toolcall"))
    assert {answer.status_code for answer in every_call(eve, other.pk, PATH)} == {404}
    assert_untouched()


def test_the_memory_of_an_agent_that_is_retired_is_closed(ann: User, mine: Agent) -> None:
    Agent.objects.filter(pk=mine.pk).update(is_active=False)
    assert {answer.status_code for answer in every_call(client_for(ann), mine.pk, PATH)} == {404}


def test_without_signing_in_all_requests_are_refused(mine: Agent, other: Agent) -> None:
    assert {answer.status_code for answer in every_call(APIClient(), mine.pk, PATH)} == {401}


def test_the_slug_of_another_agent_gives_no_access_even_if_it_looks_like_an_id(
    ann: User, mine: Agent, other: Agent
) -> None:
    client = client_for(ann)
    assert {answer.status_code for answer in every_call(client, "other", PATH)} == {404}
    # The user's own agent has the other agent's ID as its name. The ID means the other agent.
    make_agent(other.pk, everyone=False, owner=ann)
    assert {answer.status_code for answer in every_call(client, other.pk, PATH)} == {404}
    assert_untouched()


@pytest.mark.parametrize(
    "agent_id",
    [
        "{mine}%00",
        "{mine}%0a",
        "{mine}/../{other}",
        "%2e%2e",
        "..",
        "{mine}%2f..%2f{other}",
        "{MINE}",
        " {mine}",
        "{mine}%20",
        "{mine}.json",
        "*",
        "%25",
        "a" * 65,
        "٣",
        "{mine},{other}",
    ],
)
def test_no_other_spelling_of_an_id_names_an_agent(
    ann: User, mine: Agent, other: Agent, agent_id: str
) -> None:
    given = agent_id.format(mine=mine.pk, other=other.pk, MINE=mine.pk.upper())
    for answer in every_call(client_for(ann), given, PATH):
        assert answer.status_code in (400, 404), answer.request
        assert SECRET not in answer.content.decode()
    assert_untouched()


def hostile_paths(other: str) -> list[str]:
    climbs = [
        f"../{other}/memory/{PATH}",
        f"../../agents/{other}/{PATH}",
        f"knowledge/../../{other}/{PATH}",
        "knowledge/../AGENTS.md",
        "knowledge/../knowledge/notes.md",
        "../../../../etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "knowledge//notes.md",
        "knowledge/./notes.md",
        "./knowledge/notes.md",
        "/knowledge/notes.md",
        "knowledge/notes.md/",
        "knowledge/notes.md/..",
        "knowledge/",
        "knowledge",
        "/",
        "..",
        "knowledge\\notes.md",
        "knowledge/..\\..\\notes.md",
        "knowledge/notes.md\x00",
        "knowledge/notes.md\x00.txt",
        "knowledge/notes.md\n",
        "knowledge/notes.md\r\nX-Evil: 1",
        "knowledge/notes.md ",
        "knowledge/notes.md.",
        "knowledge/.notes.md",
        "knowledge/notes.md?",
        "knowledge/notes.md#x",
        "knowledge/notes.md;x",
        "knowledge/%notes.md",
        "Knowledge/notes.md",
        "KNOWLEDGE/NOTES.MD",
        "knowledge/nоtes.md",  # a Cyrillic o
        "knowledge/notes．md",  # a full-width full stop
        "knowledge／notes.md",  # a full-width slash
        "knowledge/notes.md\u200b",
        "\u202eknowledge/notes.md",
        "knowledge/no\u0301tes.md",
        "ｋnowledge/notes.md",
        "knowledge/" + "a" * 5_000 + ".md",
        "knowledge/" + "a/" * 2_000 + "b.md",
        "skills/../knowledge/notes.md",
        "skills/Report.md",
        "skills/a/b.md",
        "skills/report",
        "agents.md",
        "AGENTS.md/",
        "tools.json/..",
        "'; DROP TABLE memory_memoryfile; --",
        "%",
        "knowledge/%",
        "*",
        f"{other}/{PATH}",
    ]
    return climbs


@pytest.mark.parametrize(
    "spell",
    [
        pytest.param("encoded", marks=pytest.mark.both_databases),
        pytest.param("slashes", marks=pytest.mark.slow),
        pytest.param("twice", marks=pytest.mark.slow),
    ],
)
def test_no_path_leaves_the_memory_or_reaches_anything_by_another_spelling(
    ann: User, mine: Agent, other: Agent, spell: str
) -> None:
    client = client_for(ann)
    for path in hostile_paths(other.pk):
        written = {
            "encoded": quote(path, safe=""),
            "slashes": quote(path, safe="/"),
            "twice": quote(quote(path, safe=""), safe=""),
        }[spell]
        base = f"/api/v1/agents/{mine.pk}/memory"
        answers = [
            client.get(f"{base}/{written}"),
            client.put(f"{base}/{written}", {"content": "evil"}, format="json"),
            client.delete(f"{base}/{written}"),
            client.get(f"{base}-revisions?path={written}"),
            client.get(f"{base}-revisions?path={written}&number=1"),
            client.post(f"{base}-restore", {"path": path, "revision": 1}, format="json"),
        ]
        for answer in answers:
            assert answer.status_code in (400, 404, 405), (path, answer.request, answer.content)
            assert problem_of(answer)
            assert SECRET not in answer.content.decode()
            assert len(answer.content) < 20_000
    assert_untouched()


@pytest.mark.parametrize("spelling", ["knowledge%2Fnotes.md", "%6bnowledge/notes.md"])
def test_percent_signs_do_not_change_a_path(ann: User, mine: Agent, spelling: str) -> None:
    # RFC 3986: these are other spellings of the same URL.
    answer = client_for(ann).get(f"/api/v1/agents/{mine.pk}/memory/{spelling}")
    assert answer.json()["content"] == "my own, again"


def test_a_revision_is_of_the_agent_that_is_named(ann: User, mine: Agent, other: Agent) -> None:
    client = client_for(ann)
    base = f"/api/v1/agents/{mine.pk}/memory"
    theirs = "knowledge/theirs.md"
    assert client.get(f"{base}-revisions?path={theirs}").status_code == 404
    assert client.get(f"{base}-revisions?path={theirs}&number=1").status_code == 404
    body = {"path": theirs, "revision": 1}
    assert client.post(f"{base}-restore", body, format="json").status_code == 404
    body = {"path": PATH, "revision": 1}
    assert client.post(f"{base}-restore", body, format="json").status_code == 200
    assert client.get(f"{base}/{PATH}").json()["content"] == "my own"
    assert MemoryFile.objects.get(agent=other, path=PATH).content == f"{SECRET}, again"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "path=",
        f"path={PATH}&path=AGENTS.md",
        f"path={PATH}&number=0",
        f"path={PATH}&number=x",
        f"path={PATH}&number={'9' * 30}",
        f"path={PATH}&cursor=-1",
        f"path={PATH}&agent=x",
    ],
)
def test_a_query_that_does_not_fit_is_refused(ann: User, mine: Agent, query: str) -> None:
    answer = client_for(ann).get(f"/api/v1/agents/{mine.pk}/memory-revisions?{query}")
    assert answer.status_code == 400
    assert problem_of(answer)["code"] == "invalid"


@pytest.mark.parametrize("revision", [0, -1, "1x", None, 10**30, [1], True])
def test_a_restore_of_no_revision_is_refused(ann: User, mine: Agent, revision: object) -> None:
    url = f"/api/v1/agents/{mine.pk}/memory-restore"
    answer = client_for(ann).post(url, {"path": PATH, "revision": revision}, format="json")
    assert answer.status_code == 400
    assert MemoryRevision.objects.filter(agent=mine).count() == 2

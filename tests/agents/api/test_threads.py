"""Threads, and data of runs: generated files, subagents, databases, toolboxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User

from agents.features.databases.models import DatabaseConnection
from agents.models import Agent, Run, Thread
from agents.secret_text import SecretText
from tests.agents.api.rows import client_for, make_agent, make_run, make_user, problem_of
from tests.agents.api.test_files import body_of
from tests.agents.engine.test_subagent_files import family, sh
from tests.agents.snapshots.driven import area, command, play, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    make_agent()
    return make_user("ann")


def rename(user: User, thread: str, body: Any) -> Any:
    return client_for(user).patch(f"/api/v1/threads/{thread}", body, format="json")


def test_a_thread_shows_its_agent_and_last_run(ann: User) -> None:
    run = make_run(ann, key="mine", message="Write  a\npoem")
    shape = client_for(ann).get(f"/api/v1/threads/{run.thread_id}").json()
    assert shape.pop("created_at").endswith("Z")
    assert shape == {
        "id": run.thread_id,
        "key": "mine",
        "agent": "writer",
        "title": "Write a poem",
        "forked_from": None,
        "forked_step": None,
        "last_run": run.id,
        "last_status": "queued",
    }


def test_a_title_is_one_line(ann: User) -> None:
    thread = make_run(ann).thread_id
    assert rename(ann, thread, {"title": "  Rain\n in  May "}).json()["title"] == "Rain in May"
    for body in ({}, {"title": ""}, {"title": " \n "}, {"title": "x" * 201}, {"key": "a"}):
        assert rename(ann, thread, body).status_code == 400
    assert Thread.objects.get().title == "Rain in May"


def test_an_agent_is_read_by_its_id_and_its_slug(ann: User) -> None:
    agent = Agent.objects.get()
    by_id = client_for(ann).get(f"/api/v1/agents/{agent.pk}").json()
    assert by_id == client_for(ann).get("/api/v1/agents/writer").json()
    assert (by_id["slug"], by_id["version"], by_id["databases"]) == ("writer", 1, [])
    assert "system_prompt" not in by_id
    # A slug that equals another agent's id does not hide that agent.
    make_agent(agent.pk)
    assert client_for(ann).get(f"/api/v1/agents/{agent.pk}").json()["slug"] == "writer"
    assert problem_of(client_for(ann).get("/api/v1/agents/none"))["code"] == "unknown_agent"


def test_databases_are_shown_without_the_way_in(ann: User) -> None:
    agent = Agent.objects.get()
    secret = SecretText.seal("postgresql://reader:hunter2@db.example.org/shop")
    shop = DatabaseConnection.objects.create(name="shop", url=secret, dialect="postgresql")
    other = DatabaseConnection.objects.create(name="other", url=secret, dialect="postgresql")
    private = make_agent("private", everyone=False)
    agent.databases.add(shop)
    private.databases.add(shop, other)
    bob = make_user("bob")
    DatabaseConnection.objects.create(
        name="mine", url=secret, dialect="sqlite", agent=private, owner=bob
    )
    response = client_for(ann).get("/api/v1/databases")
    (row,) = response.json()["results"]
    assert (row["name"], row["dialect"], row["read_only"]) == ("shop", "postgresql", True)
    assert (row["agents"], row["limits"]) == (["writer"], None)
    assert b"hunter2" not in response.content
    assert b"example.org" not in response.content
    operator = client_for(make_user("olga", "configure_database")).get("/api/v1/databases")
    assert [row["name"] for row in operator.json()["results"]] == ["other", "shop"]
    assert operator.json()["results"][0]["limits"]["max_rows"] == 10_000
    assert b"hunter2" not in operator.content
    own = client_for(bob).get("/api/v1/databases").json()["results"]
    assert [row["name"] for row in own] == ["mine", "shop"]


def test_toolboxes_are_those_of_agents_that_one_may_use(
    ann: User, settings: Any, tmp_path: Path
) -> None:
    for name in ("data", "other"):
        (tmp_path / "toolboxes" / name).mkdir(parents=True)
        (tmp_path / "toolboxes" / name / "current").write_text("damaged")
    settings.VEL = {**settings.VEL, "DATA_DIR": tmp_path}
    Agent.objects.update(toolbox="data")
    (shown,) = client_for(ann).get("/api/v1/toolboxes").json()["results"]
    assert shown["name"] == "data"
    assert shown["problem"] == "It cannot be used: ask an operator."
    every = client_for(make_user("olga", "configure_sandbox")).get("/api/v1/toolboxes").json()
    assert [row["name"] for row in every["results"]] == ["data", "other"]
    assert "vel toolbox create" in every["results"][0]["problem"]
    assert client_for(ann).get("/api/v1/toolboxes?x=1").status_code == 400


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_artifacts_are_files_created_or_changed_by_a_run(tmp_path: Path) -> None:
    first = play(tmp_path, write("old", "1"), write("gone", "1"))
    run = play(
        tmp_path,
        write("old", "2"),
        command("echo hi > new; echo x > passing; rm gone"),
        command("rm passing; echo more >> new"),
        thread=first.thread,
    )
    client = client_for(run.owner)
    found = client.get(f"/api/v1/runs/{run.id}/artifacts").json()
    assert found["truncated"] is False
    shown = [(file["path"], file["what"], file["size"]) for file in found["results"]]
    assert shown == [
        ("/sandbox/workspace/new", "added", 8),
        ("/sandbox/workspace/old", "changed", 1),
    ]
    where = urlsplit(found["results"][0]["url"])
    assert parse_qs(where.query) == {"path": ["/sandbox/workspace/new"]}
    response = client.get(found["results"][0]["url"])
    assert body_of(response) == b"hi\nmore\n"
    assert response["Content-Disposition"].startswith("attachment")
    (area(run) / "new").unlink()
    gone = client.get(f"/api/v1/runs/{run.id}/artifacts").json()["results"][0]
    assert (gone["size"], gone["url"]) == (None, None)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_the_files_of_a_subagent_can_be_downloaded_by_their_urls(tmp_path: Path) -> None:
    work = [sh("echo its > own; echo end > /sandbox/outputs/o")]
    run, child = family(tmp_path, [], work, [sh("ls")], sandbox=True)
    client = client_for(run.owner)
    found = client.get(f"/api/v1/runs/{child.id}/artifacts").json()["results"]
    read = {file["path"]: body_of(client.get(file["url"])) for file in found}
    assert read == {"/sandbox/workspace/own": b"its\n"}
    strange = client_for(make_user("bob")).get(found[0]["url"])
    assert problem_of(strange)["code"] == "unknown_thread"


@pytest.mark.both_databases
def test_subagents_are_a_tree(ann: User) -> None:
    root = make_run(ann)
    child, other, grandchild = (make_run(ann) for _ in range(3))
    for run, parent in ((child, root), (other, root), (grandchild, child)):
        Run.objects.filter(pk=run.pk).update(parent=parent)
    found = client_for(ann).get(f"/api/v1/runs/{root.id}/subagents").json()
    assert found["truncated"] is False
    tree = {row["id"]: [below["id"] for below in row["subagents"]] for row in found["results"]}
    assert tree == {child.id: [grandchild.id], other.id: []}

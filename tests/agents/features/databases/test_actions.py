"""Connections: their permissions, their agents and runs, and fixed values."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.databases.actions import (
    remove_connection,
    save_connection,
    save_own_connection,
    seal_url,
)
from agents.features.databases.drivers.target import DatabaseTarget
from agents.features.databases.models import DatabaseConnection
from agents.features.databases.options import DatabaseNames
from agents.features.databases.queries import (
    DatabaseUnavailable,
    RunDatabases,
    connections_of_run,
    shown_address,
    target_of,
    targets_of,
)
from agents.models import Agent, AgentVersion
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import build_spec, current_version, save_agent
from agents.services.errors import Conflict, InvalidRequest, NotAllowed, NotFound
from agents.services.runs.start import RunRequest, create_run
from agents.spec import AgentSpec
from tests.agents.admin import rows

pytestmark = pytest.mark.django_db

URL = "postgresql://reader:hunter2@db.example.org/shop"


def connection(name: str = "shop", url: str = URL, **fields: object) -> DatabaseConnection:
    by = User.objects.filter(is_superuser=True).first() or rows.superuser()
    return save_connection(DatabaseConnection(name=name, **fields), url=url, by=by)


def agent_with(*connections: DatabaseConnection, slug: str = "coder") -> Agent:
    return save_agent(rows.agent(slug), related={"databases": connections})


def targets(agent: Agent, *names: str, owner: int = 0) -> RunDatabases:
    return targets_of(connections_of_run(agent.pk, owner, names), names)


def spec_of(agent: Agent) -> dict[str, Any]:
    """Return the agent's spec in its latest version."""
    return dict(agent.versions.get(number=agent.version).spec)


@pytest.fixture
def file(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.execute("CREATE TABLE t (x)")
    return f"sqlite:///{tmp_path}/shop.db"


def test_an_agent_without_databases_keeps_its_version_and_its_spec():
    agent = rows.agent("coder")
    spec = agent.versions.get().spec
    assert "databases" not in spec
    assert set(spec) == set(AgentSpec.model_fields)
    assert "databases" not in json.loads(build_spec(agent).model_dump_json())
    assert AgentSpec.model_validate(spec).option(DatabaseNames) == DatabaseNames()

    save_agent(agent)
    save_agent(agent, related={"databases": []})
    current_version(agent)

    assert agent.versions.count() == 1
    assert AgentVersion.objects.get(agent=agent).spec == spec


def test_giving_and_taking_databases_are_versions_that_hold_names_alone():
    agent = agent_with(connection("shop"), connection("stock"))
    spec = spec_of(agent)
    assert spec["databases"] == ["shop", "stock"]
    assert "hunter2" not in json.dumps(spec)
    assert "example.org" not in json.dumps(spec)
    save_agent(agent, related={"databases": []})
    assert "databases" not in spec_of(agent)
    assert agent.version == 3


def test_a_run_has_pinned_connections_that_are_still_granted():
    shop, stock = connection("shop", hidden_columns=["email"], max_rows=7), connection("stock")
    agent = agent_with(shop, stock)
    found = targets(agent, "shop")
    assert list(found) == ["shop"]  # the agent also has stock, which is not pinned
    assert found["shop"] == DatabaseTarget(
        name="shop",
        url="postgresql+psycopg://reader:hunter2@db.example.org/shop",
        max_rows=7,
        hidden_columns=("email",),
    )
    assert "hunter2" not in repr(found)

    agent.databases.remove(shop)
    found = targets(agent, "shop", "stock")
    assert list(found) == ["stock"]
    with pytest.raises(DatabaseUnavailable, match="shop was removed from this agent or deleted"):
        found["shop"]
    with pytest.raises(DatabaseUnavailable, match="There are: stock"):
        found["elsewhere"]
    remove_connection(stock.pk, by=User.objects.get(username="root"))
    with pytest.raises(DatabaseUnavailable, match=r"shop was removed.*stock was removed"):
        targets(agent, "shop", "stock")


def test_databases_of_another_agent_are_unavailable():
    connection("shop")
    agent = agent_with(connection("stock"))
    with pytest.raises(DatabaseUnavailable):
        targets(agent, "shop")


def test_a_lost_key_is_reported_without_secrets_and_keeps_the_others(settings, file):
    lost = connection("lost")
    settings.VEL = {**settings.VEL, "SECRET_KEYS": ("k" * 8 + "ey 0123456789 abcdefghij",)}
    agent = agent_with(lost, connection("files", url=file))
    found = targets(agent, "files", "lost")
    assert list(found) == ["files"]
    with pytest.raises(DatabaseUnavailable, match="restore the key") as raised:
        found["lost"]
    assert lost.url._token[:16] not in str(raised.value)
    assert "restore the key" in shown_address(lost)


def test_a_file_that_became_vels_own_is_not_opened(tmp_path, file, settings):
    agent = agent_with(connection("files", url=file))
    (tmp_path / "shop.db").unlink()
    (tmp_path / "shop.db").symlink_to(Path(settings.VEL["DATA_DIR"]) / "secret_key")
    with pytest.raises(DatabaseUnavailable, match="Only an operator can fix this"):
        targets(agent, "files")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "1shop"}, "name: "),
        ({"name": "shop\n"}, "name: "),
        ({"name": "a b"}, "name: "),
        ({"url": ""}, "url: Enter"),
        ({"url": "oracle://u:hunter2@h/n"}, "url: There is no driver for oracle"),
        ({"url": URL + "?options=-c%20x"}, "url: One of its parameters"),
        ({"hidden_columns": "email"}, "hidden_columns: "),
        ({"hidden_columns": ["a.b.c.d"]}, "hidden_columns: "),
        ({"hidden_columns": [""]}, "hidden_columns: "),
        ({"hidden_columns": [7]}, "hidden_columns: "),
        ({"statement_seconds": 0}, "statement_seconds: "),
        ({"statement_seconds": float("nan")}, "statement_seconds: "),
        ({"max_rows": 0}, "max_rows: "),
    ],
)
def test_invalid_values_are_refused_without_showing_the_url(fields, says):
    with pytest.raises(InvalidRequest) as raised:
        connection(**{"name": "shop", **fields})
    assert raised.value.message.startswith(says)
    assert "hunter2" not in raised.value.message
    assert not DatabaseConnection.objects.exists()


def test_only_those_with_the_permission_define_and_delete():
    shop = connection()
    editor = rows.staff("editor", "change_databaseconnection", "change_agent")
    for action in (
        lambda: save_connection(DatabaseConnection(name="mine"), url=URL, by=editor),
        lambda: save_connection(shop, url="", by=editor),
        lambda: remove_connection(shop.pk, by=editor),
    ):
        with pytest.raises(NotAllowed):
            action()
    with pytest.raises(NotFound):
        remove_connection("nothing", by=editor)
    assert DatabaseConnection.objects.get() == shop


def test_an_empty_url_keeps_the_stored_one_and_another_takes_its_place():
    shop = connection()
    root = User.objects.get(username="root")
    save_connection(shop, url="", by=root)
    assert shown_address(shop) == "postgresql reader@db.example.org:5432/shop"
    save_connection(shop, url="postgresql://w@other.example.org:1/x", by=root)
    shop.refresh_from_db()
    assert shown_address(shop) == "postgresql w@other.example.org:1/x"


def test_shared_names_are_unique():
    connection("shop")
    with pytest.raises(InvalidRequest):
        connection("shop")


def own(
    owner: User, slug: str, url: str = URL, name: str = "shop"
) -> tuple[Agent, DatabaseConnection]:
    agent = Agent.objects.filter(slug=slug).first()
    agent = agent or save_agent(Agent(slug=slug, name=slug, owner=owner))
    return agent, save_own_connection(agent, name, seal_url(url))


def test_ones_own_serves_ones_own_runs_with_ones_own_agent():
    ada, mallory = rows.user("ada"), rows.user("mallory")
    agent, row = own(ada, "cli-ada")
    save_agent(agent, related={"databases": [row]})
    assert list(targets(agent, "shop", owner=ada.pk)) == ["shop"]
    with pytest.raises(DatabaseUnavailable):  # the agent was shared with her
        targets(agent, "shop", owner=mallory.pk)
    with pytest.raises(InvalidRequest, match="another agent's command line"):
        save_agent(rows.agent("other"), related={"databases": [row]})
    other = Agent.objects.get(slug="other")
    other.databases.add(row)  # not possible through the doors
    with pytest.raises(DatabaseUnavailable):
        targets(other, "shop", owner=ada.pk)
    with pytest.raises(NotAllowed):
        remove_connection(row.pk, by=mallory)
    with pytest.raises(NotAllowed):
        save_connection(row, url=URL, by=rows.superuser())
    remove_connection(row.pk, by=ada)


def test_two_of_one_name_cannot_be_given():
    ada = rows.user("ada")
    agent, row = own(ada, "cli-ada")
    with pytest.raises(InvalidRequest, match="same name"):
        save_agent(agent, related={"databases": [row, connection("shop")]})


def test_a_name_in_use_keeps_its_url_until_the_run_has_ended():
    ada = rows.user("ada")
    agent, row = own(ada, "cli-ada")
    save_agent(agent, related={"databases": [row]})
    run = create_run(RunRequest(agent="cli-ada", message="go"), owner=ada).run
    own(ada, "cli-ada")  # the same again
    with pytest.raises(Conflict, match=run.pk):
        own(ada, "cli-ada", "postgresql://w@other.example.org/x")
    rows.put(run, "completed")
    own(ada, "cli-ada", "postgresql://w@other.example.org/x")
    row.refresh_from_db()
    assert "other.example.org" in shown_address(row)


def test_nothing_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    agent = agent_with(connection())
    targets(agent, "shop")
    with pytest.raises(InvalidRequest):
        connection("bad", url=URL + "?passfile=hunter2")
    assert "hunter2" not in caplog.text


def test_a_loaded_dump_without_a_url_is_reported():
    row = DatabaseConnection.objects.create(name="shop", url=SecretText(""))
    agent = rows.agent("coder")
    agent.databases.add(row)
    with pytest.raises(DatabaseUnavailable, match="Nothing is stored here"):
        targets(agent, "shop")


def test_write_mode_and_dialect_are_pinned_by_a_version_and_checked_again(file):
    root = rows.superuser("boss")
    shop = save_connection(DatabaseConnection(name="files"), url=file, by=root)
    agent = agent_with(shop)
    names = AgentSpec.model_validate(spec_of(agent)).option(DatabaseNames)
    assert (names.database_dialects, names.writable_databases) == (("sqlite",), ())

    shop.allow_writes = True
    editor = rows.staff("editor", "configure_database")
    with pytest.raises(NotAllowed, match="allow_database_writes"):
        save_connection(shop, url="", by=editor)
    save_connection(shop, url="", by=root)
    spec = AgentSpec.model_validate(current_version(agent).spec)
    assert spec.option(DatabaseNames).writable_databases == ("files",)
    [row] = DatabaseConnection.objects.all()
    assert target_of(row).allow_writes

    row.allow_writes = False
    with pytest.raises(NotAllowed):  # nor may they change one that allows writes
        save_connection(row, url="", by=editor)


def test_an_own_connection_is_writable_only_if_its_program_allows_it(file):
    agent = rows.agent("own", owner=rows.superuser("boss"))
    assert not target_of(save_own_connection(agent, "mine", seal_url(file))).allow_writes
    row = save_own_connection(agent, "mine", seal_url(file), allow_writes=True)
    assert target_of(row).allow_writes


def test_the_limits_of_an_own_connection_are_those_of_its_program(file):
    agent = rows.agent("own", owner=rows.superuser("boss"))
    row = save_own_connection(agent, "mine", seal_url(file), statement_seconds=5, max_rows=7)
    assert (target_of(row).statement_seconds, target_of(row).max_rows) == (5, 7)
    same = save_own_connection(agent, "mine", seal_url(file), statement_seconds=5, max_rows=7)
    assert same.updated_at == row.updated_at
    row = save_own_connection(agent, "mine", seal_url(file))
    assert (row.statement_seconds, row.max_rows) == (30, 10_000)

"""The tables of databases become those of their own app."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from agents.features.databases.models import DatabaseConnection
from agents.models import Agent
from agents.secret_text import SecretText

URL = "postgresql://reader:hunter2@db.example.org/shop"

pytestmark = pytest.mark.both_databases


@pytest.fixture
def before(transactional_db: None) -> Iterator[None]:
    call_command("migrate", "agents", "0011", verbosity=0)
    ContentType.objects.filter(model="databaseconnection").delete()
    ContentType.objects.clear_cache()
    yield
    call_command("migrate", verbosity=0)
    ContentType.objects.clear_cache()


def test_connections_stay_with_their_agents_and_the_rights_of_people(before: None) -> None:
    earlier = MigrationExecutor(connection).loader.project_state(("agents", "0011_machine")).apps
    ann = User.objects.create(username="ann")
    agent = earlier.get_model("agents", "Agent").objects.create(name="Ada", slug="ada")
    rows = earlier.get_model("agents", "DatabaseConnection").objects
    shop = rows.create(name="shop", url=SecretText.seal(URL), max_rows=7)
    own = rows.create(name="own", url=SecretText.seal(URL), agent=agent, owner_id=ann.pk)
    agent.databases.set([shop, own])
    kind = ContentType.objects.create(app_label="agents", model="databaseconnection")
    right = Permission.objects.create(content_type=kind, codename="configure_database", name="x")
    ann.user_permissions.add(right)

    call_command("migrate", verbosity=0)

    found = DatabaseConnection.objects.get(name="shop")
    assert (found.pk, found.url.reveal(), found.max_rows) == (shop.pk, URL, 7)
    assert [row.pk for row in found.agents.all()] == [agent.pk]
    assert {row.name for row in Agent.objects.get().databases.all()} == {"shop", "own"}
    assert DatabaseConnection.objects.get(agent=agent.pk).owner == ann
    assert User.objects.get().has_perm("vel_databases.configure_database")
    assert Permission.objects.filter(codename="configure_database").get() == right
    assert not ContentType.objects.filter(app_label="agents", model=kind.model).exists()

"""Hosts in the admin: the shown fields, and the actions with their permissions."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Machine, Thread
from agents.models.database_clock import database_now
from tests.agents.admin import rows
from tests.agents.admin.pages import act, client_of, list_url, messages_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> User:
    return rows.superuser()


def host(name: str, silent: float = 0, **more: Any) -> Machine:
    now = database_now()
    return Machine.objects.create(
        name=name, identity=name, joined_at=now, seen_at=now - silent, **more
    )


def test_the_list_shows_the_state_of_each_host(root: User) -> None:
    for name, more in {
        "busy": {},
        "quiet": {"silent": 1_000},
        "lost": {"silent": 1_000, "dead_at": 1.0},
        "leaving": {"is_draining": True},
        "left": {"is_draining": True},
    }.items():
        host(name, **more)
    for name in ("busy", "busy", "leaving"):
        Thread.objects.filter(pk=rows.run(root).thread_id).update(host=name)
    page = client_of(root).get(list_url(Machine))
    shown = {row.name: (row.now is not None, row.held) for row in page.context["cl"].result_list}
    assert {name: held for name, (_, held) in shown.items()} == {
        "busy": 2,
        "quiet": 0,
        "lost": 0,
        "leaving": 1,
        "left": 0,
    }
    text = text_of(page)
    for state in ("alive", "silent", "dead", "draining", "drained"):
        assert state in text


def test_the_list_takes_as_many_statements_for_many_as_for_one(
    root: User, django_assert_num_queries: Any
) -> None:
    client = client_of(root)
    host("first")
    client.get(list_url(Machine))
    with CaptureQueriesContext(connection) as one:
        client.get(list_url(Machine))
    for number in range(5):
        host(f"more{number}")
    with django_assert_num_queries(len(one)):
        client.get(list_url(Machine))


def test_draining_the_only_host_is_refused_with_a_reason(root: User) -> None:
    answer = act(client_of(root), "drain", host("only"))
    assert "No other host is alive" in messages_of(answer)[0]
    assert not Machine.objects.get().is_draining


def test_a_living_host_is_not_declared_dead(root: User) -> None:
    answer = act(client_of(root), "declare_dead", host("busy"))
    assert "heartbeat" in messages_of(answer)[0]
    assert Machine.objects.get().dead_at is None


def test_a_viewer_gets_no_actions() -> None:
    reader = rows.staff("reader", "view_machine")
    host("other")
    one = host("one")
    client = client_of(reader)
    assert "one" in text_of(client.get(list_url(Machine)))
    act(client, "drain", one)
    assert not Machine.objects.filter(is_draining=True).exists()
    assert client_of(rows.staff("nobody")).get(list_url(Machine)).status_code == 403


def test_the_log_names_the_host_as_written(root: User) -> None:
    """Messages start with a capital letter, but names of hosts are case-sensitive."""
    one = host("one")
    host("other")
    assert "Host one: draining." in text_of(act(client_of(root), "drain", one))

"""The doctor's report on MCP servers, which does not start any server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.mcp_client import doctor
from agents.features.mcp_client.doctor import check_mcp_servers
from agents.features.mcp_client.models import McpServer
from agents.kernel.findings import Finding, Level
from tests.support.mcp_servers import accept_all, define
from tests.support.runs import make_agent, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return make_user(is_superuser=True)


def found() -> list[Finding]:
    return list(check_mcp_servers())


def without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)


def test_without_servers_the_report_is_empty(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    make_agent(ada)
    without_the_package(monkeypatch)
    assert found() == []


def test_a_server_waits_to_be_accepted_and_one_that_is_off_is_left_out(ada: User) -> None:
    row = define(ada)
    (new,) = found()
    assert (new.subject, new.level) == ("MCP server plain", Level.NOTE)
    assert new.detail == "no tools fetched yet"
    assert "in the admin" in new.mend
    McpServer.objects.filter(pk=row.pk).update(enabled=False)
    assert found() == []


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_a_changed_server_needs_a_review(ada: User) -> None:
    row = accept_all(define(ada), ada)
    assert found() == [Finding("MCP server plain", Level.OK, "2 tools")]
    other = [{**row.tools[0], "description": "Another one.", "digest": "0" * 64}]
    McpServer.objects.filter(pk=row.pk).update(found=other)
    (changed,) = found()
    assert (changed.level, changed.detail) == (Level.NOTE, "to be accepted")


def test_an_unreachable_server_is_reported_with_the_reason(ada: User) -> None:
    row = define(ada)
    McpServer.objects.filter(pk=row.pk).update(problem="no such program\x1b[2J", tools=[{}])
    (lost,) = found()
    assert lost.level == Level.NOTE
    assert lost.detail.startswith("not reached: no such program")
    assert "\x1b" not in lost.detail


def test_a_toolbox_that_is_not_here_is_broken(ada: User, settings: Any, tmp_path: Path) -> None:
    settings.VEL = {**settings.VEL, "DATA_DIR": tmp_path}
    McpServer.objects.filter(pk=define(ada).pk).update(toolbox="maths")
    (broken,) = found()
    assert (broken.level, "'maths' is not on this host" in broken.detail) == (Level.BROKEN, True)
    assert broken.mend == "vel toolbox create maths PACKAGE…"


def test_without_the_package_all_servers_are_broken(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(ada)
    define(ada, slug="second")
    assert len(found()) == 2
    without_the_package(monkeypatch)
    (together,) = found()
    assert together.level == Level.BROKEN
    assert together.detail.startswith("2 are defined")
    assert together.mend == "pip install 'vel[mcp]'"

"""Toolboxes by REST: built by staff, only from the index of the server."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.models import AuditEntry
from agents.services import toolbox_builds
from tests.agents.api.managed.rows import operator, post
from tests.agents.api.rows import client_for, make_user, problem_of
from tests.sandbox.places import reachable_directory
from tests.support.hang import HANG
from tests.support.wheels import NO_INDEX, make_wheel

pytestmark = pytest.mark.django_db
URL = "/api/v1/toolboxes"


@pytest.fixture
def place(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory, and a pip that finds only the wheel `tiny`."""
    with reachable_directory() as directory:
        wheels = directory / "wheels"
        wheels.mkdir()
        make_wheel(wheels)
        for name, value in {**NO_INDEX, "PIP_FIND_LINKS": str(wheels)}.items():
            monkeypatch.setenv(name, value)
        data = directory / "data"
        data.mkdir(mode=0o711)
        settings.VEL = {**settings.VEL, "DATA_DIR": data}
        yield directory


def wait_for_build(name: str) -> None:
    for thread in threading.enumerate():
        if thread.name == f"toolbox {name}":
            thread.join(HANG)


@pytest.mark.bubblewrap
def test_a_program_builds_and_removes_a_toolbox(place: Path) -> None:
    client = operator("configure_sandbox")
    body, key = {"name": "data", "packages": ["tiny"]}, {"Idempotency-Key": "k-1"}
    started = client.post(URL, body, format="json", headers=key)
    repeated = client.post(URL, body, format="json", headers=key)
    assert repeated.json() == started.json()
    assert repeated["Idempotency-Replayed"] == "true"
    assert (started.status_code, started.json()["name"]) == (202, "data"), started.content
    wait_for_build("data")
    shown = client.get(f"{URL}/data").json()
    assert shown["build"] == {"state": "built", "detail": ""}
    assert shown["packages"] == [{"name": "tiny", "version": "1.0"}]
    again = post(client, URL, {"name": "data", "packages": ["tiny"]})
    assert again.status_code == 409
    assert client.delete(f"{URL}/data").status_code == 204
    assert client.get(f"{URL}/data").status_code == 404
    done = AuditEntry.objects.filter(kind="toolbox").order_by("id")
    assert [(each.action, each.target, each.actor) for each in done] == [
        ("toolbox.build_started", "data", "olga"),
        ("toolbox.removed", "data", "olga"),
    ]


@pytest.mark.bubblewrap
def test_a_failed_build_gives_the_reason_and_leaves_nothing(place: Path) -> None:
    client = operator("configure_sandbox")
    assert post(client, URL, {"name": "data", "packages": ["nosuch"]}).status_code == 202
    wait_for_build("data")
    shown = client.get(f"{URL}/data").json()
    assert shown["build"]["state"] == "failed"
    assert "nosuch" in shown["build"]["detail"]
    assert client.get(URL).json()["results"] == []


def test_there_is_one_build_at_a_time(place: Path) -> None:
    client = operator("configure_sandbox")
    lock = toolbox_builds._take_lock()
    assert lock is not None
    with open(lock, "w") as held:
        refused = post(client, URL, {"name": "data", "packages": ["tiny"]})
        assert (refused.status_code, problem_of(refused)["code"]) == (409, "build_running")
        fcntl.flock(held, fcntl.LOCK_UN)


def test_a_build_that_was_interrupted_is_not_shown_as_running(place: Path) -> None:
    toolbox_builds._write("data", toolbox_builds.BuildState("building"))
    shown = operator("configure_sandbox").get(f"{URL}/data").json()
    assert shown["build"]["state"] == "failed"


@pytest.mark.parametrize(
    "package",
    [
        "/etc/passwd",
        "./tiny-1.0-py3-none-any.whl",
        "tiny-1.0-py3-none-any.whl",
        "tiny @ http://127.0.0.1:9/tiny.whl",
        "git+https://example.org/tiny",
        "--index-url=http://evil.example",
        "-r/etc/passwd",
        "tiny\n--index-url http://evil.example",
        "",
    ],
)
def test_only_packages_of_the_index_are_accepted(place: Path, package: str) -> None:
    refused = post(operator("configure_sandbox"), URL, {"name": "data", "packages": [package]})
    assert refused.status_code == 400, refused.content
    assert toolbox_builds.build_state("data").state == "none"


def test_a_wheel_on_the_host_is_for_people_with_an_account_there(place: Path) -> None:
    wheel = str(place / "wheels" / "tiny-1.0-py3-none-any.whl")
    refused = post(operator("configure_sandbox"), URL, {"name": "data", "packages": [wheel]})
    assert refused.status_code == 400, refused.content
    assert "no package of an index" in problem_of(refused)["detail"]


@pytest.mark.parametrize("name", ["../data", ".hidden", "a/b", "", "x" * 101])
def test_a_name_is_not_a_path(place: Path, name: str) -> None:
    refused = post(operator("configure_sandbox"), URL, {"name": name, "packages": ["tiny"]})
    assert refused.status_code == 400, refused.content


def test_only_permitted_people_build_and_remove(place: Path) -> None:
    body = {"name": "data", "packages": ["tiny"]}
    plain = client_for(make_user("pia", "configure_sandbox"), "read", "admin")
    stranger = client_for(make_user("ann"), "read", "admin")
    managing = operator("configure_sandbox", scopes=("read", "manage"))
    for client in (plain, stranger, managing, operator(name="ole")):
        assert post(client, URL, body).status_code == 403
        assert client.delete(f"{URL}/data").status_code == 403
    assert stranger.get(f"{URL}/data").status_code == 403
    assert not AuditEntry.objects.filter(kind="toolbox").exists()

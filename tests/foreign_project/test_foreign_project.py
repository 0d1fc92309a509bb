"""Vel in another project: real processes, another user model, other settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.foreign_project.shop import SEED, Shop, Visitor
from tests.support.hang import HANG

pytestmark = pytest.mark.timeout(6 * HANG)  # it starts several processes one after the other

AGENT = """
name: {name}
slug: {name}
provider: scripted
model: "file:{script}"
tools: [find_books, lend_book, count_copies]
sandbox: false
everyone: true
"""


def call(tool: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "input": given}]}


@dataclass
class World:
    shop: Shop
    boss: Visitor
    people: dict[str, Visitor]

    def start(self, name: str, agent: str) -> str:
        body = {"agent": agent, "message": "My books"}
        return str(self.people[name].api("runs", body)["id"])

    def decide(self, run: str, decision: str = "approve") -> None:
        asked = self.boss.request_of(run)
        body = {"decision": decision, "digest": asked["digest"]}
        self.boss.api(f"approvals/{asked['id']}/decide", body)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, CompletedProcess[str]]:
    shop = Shop(tmp_path_factory.mktemp("bookshop"))
    done = shop.python("-c", SEED)
    assert "seeded" in done.stdout, done.stderr
    return shop, done


@pytest.fixture(scope="module")
def shop(seeded: tuple[Shop, CompletedProcess[str]]) -> Shop:
    return seeded[0]


@pytest.fixture(scope="module")
def world(shop: Shop) -> Iterator[World]:
    with shop.open():
        boss = Visitor(shop).sign_in("boss").program("read", "run", "approve", "manage")
        names = ("ada", "bob", "carl", "dora", "erna")
        people = {n: Visitor(shop).sign_in(n).program("read", "run", "approve") for n in names}
        lend = call("lend_book", title="First of ada", to="Zoë")
        find = call("find_books", word="first")
        copies = call("count_copies", title="First")
        scripts = {
            "clerk": [find, copies, lend, {"text": "done"}],
            "slow": [call("lend_book", title="First of dora", to="Zoë"), find, {"text": "done"}],
            "late": [call("lend_book", title="First of erna", to="Zoë"), {"text": "done"}],
            "hasty": [call("lend_book", title="First of bob", to="nobody"), {"text": "done"}],
        }
        for name, turns in scripts.items():
            text = AGENT.format(name=name, script=shop.script(name, *turns))
            boss.api("agents/import", {"yaml": text})
        yield World(shop, boss, people)


def test_its_settings_pass_and_no_migration_is_missing(
    seeded: tuple[Shop, CompletedProcess[str]],
) -> None:
    _, done = seeded
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vel." not in done.stderr


def test_each_sees_their_own_books_and_decides_over_the_socket(world: World) -> None:
    runs = {name: world.start(name, "clerk") for name in ("ada", "bob")}
    for name, run in runs.items():
        person = world.people[name]
        asked = person.request_of(run)
        assert asked["tool"] == "lend_book"  # a synchronous function uses the database
        url = f"ws://127.0.0.1:{world.shop.port}/live/ws/runs/{run}/"
        headers = {"Authorization": f"Token {person.token}"}
        with connect(url, additional_headers=headers) as live:
            frame = {"type": "decide", "approval_id": asked["id"], "digest": asked["digest"]}
            live.send(json.dumps({**frame, "decision": "approve"}))
            seen = ""
            while seen != "run.completed":
                seen = json.loads(live.recv(timeout=HANG))["type"]
        assert person.ended(run)["status"] == "completed"
        calls = person.calls(run)
        found = json.loads(calls["find_books"]["result"])
        assert [book["title"] for book in found] == [f"First of {name}"]
        assert calls["count_copies"]["result"] == "1"  # asynchronous, from another database
    lent = [world.people[name].calls(run)["lend_book"]["result"] for name, run in runs.items()]
    assert lent == ["1 lent to Zoë", "0 lent to Zoë"]


def test_a_user_without_the_permission_is_refused(world: World) -> None:
    run = world.start("carl", "clerk")
    world.decide(run)
    refused = world.people["carl"].ended(run) and world.people["carl"].calls(run)["find_books"]
    assert (refused["is_error"], refused["code"]) == (True, "not_allowed")
    assert "library.view_book" in refused["result"]


def test_a_permission_lost_during_the_run_is_refused(world: World) -> None:
    run = world.start("dora", "slow")
    world.boss.request_of(run)
    world.shop.change(
        "DELETE FROM library_reader_user_permissions WHERE reader_id IN "
        "(SELECT id FROM library_reader WHERE email = 'dora@shop.np')"
    )
    world.decide(run)
    world.boss.ended(run)
    calls = world.boss.calls(run)
    assert calls["lend_book"]["result"] == "1 lent to Zoë"
    assert calls["find_books"]["code"] == "not_allowed"


def test_an_account_disabled_during_the_run_lends_nothing(world: World) -> None:
    run = world.start("erna", "late")
    world.boss.request_of(run)
    world.shop.change("UPDATE library_reader SET is_active = 0 WHERE email = 'erna@shop.np'")
    world.decide(run)
    world.boss.ended(run)
    assert world.boss.calls(run)["lend_book"]["code"] == "not_allowed"


def test_changes_of_a_failed_call_are_undone(world: World) -> None:
    run = world.start("bob", "hasty")
    world.decide(run)
    world.boss.ended(run)
    assert world.boss.calls(run)["lend_book"]["code"] == "exception"
    check = world.start("bob", "clerk")
    world.decide(check, "reject")
    world.boss.ended(check)
    found = json.loads(world.boss.calls(check)["find_books"]["result"])
    assert found == [{"title": "First of bob", "lent_to": ""}]


def test_the_projects_own_framework_settings_do_not_reach_the_api(world: World) -> None:
    stranger = Visitor(world.shop)
    for _ in range(2):  # the project allows anonymous users one request a day
        status, text, headers = stranger.ask("/vel/api/runs")
        assert (status, json.loads(text)["code"]) == (401, "not_authenticated")
        assert headers["Content-Type"] == "application/problem+json"
    found = world.people["ada"].api("agents?limit=4")
    assert len(found["results"]) == 4
    run = world.start("ada", "late")
    made = world.people["ada"].api(f"runs/{run}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", made["created_at"])
    world.decide(run, "reject")
    assert world.people["bob"].ask(f"/vel/api/runs/{run}")[0] == 404
    document = world.people["ada"].api("schema")
    assert document["servers"] == [{"url": "/vel/api"}]


def test_a_bad_token_is_counted_though_requests_are_transactions(world: World) -> None:
    # The project allows five a minute. A new minute may start between two requests.
    codes = {Visitor(world.shop, "vel_none").ask("/vel/api/runs")[0] for _ in range(12)}
    assert codes == {401, 429}


def test_mcp_clients_are_answered_though_requests_are_transactions(world: World) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    assert Visitor(world.shop).ask("/vel/mcp", body, **accept)[0] == 401
    status, text, _ = world.people["ada"].ask("/vel/mcp", body, **accept)
    assert (status, '"vel_get_run"' in text) == (200, True)


def test_the_pages_and_the_admin_work_below_their_prefixes(world: World) -> None:
    stranger = Visitor(world.shop)
    assert "/members/sign-in/?next=/vel/runs/" in stranger.ask("/vel/runs/")[2]["url"]
    run = world.start("ada", "late")
    asked = world.boss.request_of(run)
    ada, boss = (Visitor(world.shop).sign_in(name) for name in ("ada", "boss"))
    pages = ("", "runs/", f"runs/{run}/", "approvals/", f"approvals/{asked['id']}/", "usage/",
             "profile/", "connections/", "skills/", "agents/clerk/knowledge/",
             "agents/clerk/skills/", f"runs/{run}/changes/", "agents/new/", "api/docs")  # fmt: skip
    for page in pages:
        status, text, _ = (boss if page == "agents/new/" else ada).ask(f"/vel/{page}")
        assert status == 200, (page, text)
        assert page == "api/docs" or 'data-sockets="/live/ws/"' in text
        if page.endswith("knowledge/"):  # HTML number format, not the local one
            assert re.search(r'<meter[^>]* max="\d{4,}"', text), text
    world.decide(run, "reject")
    status, index, _ = boss.ask("/office/")
    links = set(
        re.findall(r'href="(/office/(?:agents|memory|skills_app|vel_\w+)/\w+/(?:add/)?)"', index)
    )
    assert len(links) > 15
    for link in sorted(links):
        status, text, _ = boss.ask(link)
        assert status in (200, 403), (link, status, text)


def test_a_missing_app_is_named(shop: Shop) -> None:
    program = (
        "from bookshop import settings\nsettings.INSTALLED_APPS.remove('django_q')\n"
        "import django\ndjango.setup()"
    )
    failed = shop.python("-c", program)
    assert "INSTALLED_APPS lacks django_q" in failed.stderr
    assert "vel.E020" in failed.stderr


def test_the_clusters_log_has_no_error(world: World, request: pytest.FixtureRequest) -> None:
    log = (Path(world.shop.directory) / "log").read_text()
    assert "Traceback" not in log, log[-4000:]

"""The language of pages, and the English of everything else."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import AsyncClient, Client
from django.utils.html import escape
from django.utils.translation import get_language, override

from agents.models import AuditEntry, RunEvent
from tests.agents.api.rows import make_agent, make_user
from tests.agents.web.asking import ask
from tests.support import site_writer
from tests.support.every_address import Address, addresses
from tests.support.hang import HANG
from tests.support.site import Site, migrated_site

pytestmark = pytest.mark.django_db

GERMAN = {"accept-language": "de-AT,de;q=0.9,en;q=0.5"}
AUTOMATIC = {"language": "", "next": "/login/"}
REJECTION = {"decision": "reject", "reason": "no"}
BUDGET = {"period": "day", "max_tokens": "1000", "max_cost": "1.5"}
PAGE_NAMES = ("web:", "admin:", "admin/", "login", "logout", "vel-status")
ANSWERS_ONCE = {
    "api:schema": "takes seconds, and `docs/reference` has its English text",
    "metrics": "shows what the process did in the meantime",
}


@pytest.fixture
def browser() -> Client:
    return Client()


def language_of(response: object) -> str:
    html = response.content.decode()  # type: ignore[attr-defined]
    found = re.search(r'<html lang="(\w+)"', html)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("de", "de"),
        ("de-AT,de;q=0.9", "de"),
        ("fr", "en"),
        ("*", "en"),
        ("", "en"),
        ("x" * 9000, "en"),
    ],
)
def test_a_page_is_in_the_language_of_the_browser(
    browser: Client, accepted: str, language: str
) -> None:
    page = browser.get("/login/", headers={"accept-language": accepted})
    assert language_of(page) == language
    assert page["Content-Language"] == language
    assert {"Accept-Language", "Cookie"} <= set(page["Vary"].split(", "))
    assert "no-store" in page["Cache-Control"]


def test_the_choice_of_a_person_is_stronger_than_the_browser(browser: Client) -> None:
    answer = browser.post("/language/", {"language": "en", "next": "/login/"})
    assert answer["Location"] == "/login/"
    cookie = answer.cookies["vel_language"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert language_of(browser.get("/login/", headers=GERMAN)) == "en"
    browser.post("/language/", AUTOMATIC)
    assert language_of(browser.get("/login/", headers=GERMAN)) == "de"


def test_the_menu_shows_the_choice(browser: Client) -> None:
    browser.force_login(make_user("olga"))
    assert '<button name="language" value="" aria-pressed="true">' in home(browser)
    browser.post("/language/", {"language": "de", "next": "/"})
    assert '<button name="language" value="de" lang="de" aria-pressed="true">' in home(browser)


def test_a_hostile_name_in_a_translated_sentence_is_escaped(browser: Client) -> None:
    hostile = '<img src=x onerror="alert(1)">%(name)s'
    agent = make_agent("shop")
    agent.name = hostile
    agent.save()
    browser.force_login(make_user("olga"))
    browser.post("/language/", {"language": "de", "next": "/"})
    html = home(browser)
    assert "<img" not in html
    assert f"Neuer Lauf von {escape(hostile)}" in html


def home(browser: Client) -> str:
    return browser.get("/").content.decode()


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_the_choice_leads_to_no_other_site(browser: Client, back: str) -> None:
    headers = {"referer": "https://evil.example/"}
    answer = browser.post("/language/", {"language": "de", "next": back}, headers=headers)
    assert answer["Location"] == "/"


def test_an_unknown_language_leaves_the_page_english(browser: Client) -> None:
    for language in ("fr", "xx", "../../etc"):
        browser.post("/language/", {"language": language, "next": "/"})
        assert language_of(browser.get("/login/")) == "en"


def test_only_a_form_of_the_page_changes_the_language(browser: Client) -> None:
    assert browser.get("/language/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/language/", {"language": "de", "next": "/"}).status_code == 403
    assert "vel_language" not in strict.cookies


def test_the_texts_of_scripts_are_those_of_the_page(browser: Client) -> None:
    assert "texts.js" not in browser.get("/login/").content.decode()
    page = browser.get("/login/", headers=GERMAN).content.decode()
    found = re.search(r'<script src="(/texts\.js\?v=[0-9a-f]{16})"></script>', page)
    assert found is not None
    texts = browser.get(found[1], headers=GERMAN)
    assert texts["Content-Type"].startswith("text/javascript")
    assert texts["Content-Language"] == "de"
    assert {"private", "immutable"} <= set(texts["Cache-Control"].split(", "))
    assert b"Nachher" in texts.content


def test_texts_under_the_hash_of_others_are_not_cached(browser: Client) -> None:
    page = browser.get("/login/", headers=GERMAN).content.decode()
    found = re.search(r"/texts\.js\?v=[0-9a-f]+", page)
    assert found is not None
    for address, headers in ((found[0], {}), (f"{found[0]}0", GERMAN), ("/texts.js", GERMAN)):
        assert "no-store" in browser.get(address, headers=headers)["Cache-Control"]


def test_an_unknown_address_is_a_page_unless_it_is_of_the_api(browser: Client) -> None:
    assert language_of(browser.get("/no/such/page", headers=GERMAN)) == "de"
    for address in ("/api/v1/no-such", "/api/no-such"):
        answers = [browser.get(address, headers=each) for each in (GERMAN, {})]
        assert answers[0].content == answers[1].content
        assert "Content-Language" not in answers[0]


def programs_addresses() -> list[Address]:
    return [
        each
        for each in addresses()
        if not each.name.startswith(PAGE_NAMES) and each.name not in ANSWERS_ONCE
    ]


def test_programs_get_the_same_bytes_in_each_language() -> None:
    """Ask each address that is not a page, as a visitor and as a user who may do everything."""
    visitor, root = (Client(raise_request_exception=False) for _ in range(2))
    root.force_login(make_user("root", superuser=True))
    compared = 0
    for address in programs_addresses():
        for client, method in ((visitor, "get"), (root, "get"), (root, "post")):
            answers = [bytes_of(address, client, method, language) for language in ("en", "de")]
            assert answers[0] == answers[1], (address, method)
            compared += 1
    assert compared > 100


def bytes_of(address: Address, client: Client, method: str, language: str) -> tuple[object, ...]:
    client.cookies["vel_language"] = language
    body = {"content_type": "application/json"} if method == "post" else {}
    call = getattr(client, method)
    answer = call(address.path, headers={"accept-language": language}, **body)
    assert "Content-Language" not in answer, address
    return answer.status_code, answer.getvalue(), answer.get("Vary", "")


def test_what_a_german_page_stores_is_english() -> None:
    site_writer.make_user("olga", admin=True)
    assert stored_in("de") == stored_in("en")


def stored_in(language: str) -> list[object]:
    """Decide a request, cancel a run and add a budget. Return the entries and events of that."""
    olga = get_user_model().objects.get(username="olga")
    client = Client()
    client.force_login(olga)
    client.cookies["vel_language"] = language
    with transaction.atomic():
        run = site_writer.make_run("olga")
        request = ask(run)
        client.post(f"/approvals/{request.pk}/decide/", {**REJECTION, "digest": request.digest})
        client.post(f"/runs/{run}/cancel/")
        client.post("/admin/vel_budgets/budget/add/", {"user": olga.pk, **BUDGET})
        found: list[object] = [
            *AuditEntry.objects.order_by("pk").values_list("action", "kind", "target", "note"),
            *RunEvent.objects.filter(run=run).values_list("type", "data"),
        ]
        transaction.set_rollback(True)
    assert {"approval.decided", "budget.created"} <= {each[0] for each in found}  # type: ignore[index]
    return [str(each).replace(run, "RUN").replace(request.pk, "REQUEST") for each in found]


def test_an_english_request_after_a_german_one_is_english(browser: Client) -> None:
    assert language_of(browser.get("/login/", headers=GERMAN)) == "de"
    assert get_language() == "en"
    assert language_of(browser.get("/login/")) == "en"
    with override("de"):  # left by another request of this thread
        assert language_of(browser.get("/login/")) == "en"


@pytest.mark.django_db(transaction=True)
def test_requests_at_the_same_time_keep_their_languages() -> None:
    async def visit(language: str) -> str:
        headers = {"accept-language": language}
        return language_of(await AsyncClient().get("/login/", headers=headers))

    async def visit_all() -> list[str]:
        return await asyncio.gather(*(visit(each) for each in wanted))

    wanted = ["de", "en", "en", "de", "de", "en"]
    assert async_to_sync(visit_all)() == wanted


def test_a_thread_of_a_german_page_is_english() -> None:
    seen: list[str | None] = []
    with override("de"):
        thread = threading.Thread(target=lambda: seen.append(get_language()))
        thread.start()
        thread.join()
    assert seen == ["en"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Site]:
    site = migrated_site(tmp_path)
    try:
        site.start_server()
        yield site
    finally:
        site.close()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_server_that_reuses_its_threads_keeps_the_languages_apart(served: Site) -> None:
    def visit(number: int) -> tuple[str, bytes]:
        language = ("de", "en")[number % 2]
        connection = HTTPConnection("localhost", served.port, timeout=HANG)
        with closing(connection):
            connection.request("GET", "/login/", headers={"Accept-Language": language})
            page = connection.getresponse().read().decode()
            connection.request("GET", "/api/v1/runs", headers={"Accept-Language": language})
            problem = connection.getresponse().read()
        assert f'<html lang="{language}"' in page
        return language, problem

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(visit, range(80)))
    assert {language for language, _ in answers} == {"de", "en"}
    assert len({problem for _, problem in answers}) == 1

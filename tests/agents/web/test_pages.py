"""Rules for every page: access, and security headers for browsers."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.agents.web.conftest import SignIn
from tests.support import site_writer

PAGES = ["/", "/runs/", "/runs/{run}/", "/runs/{run}/summary/"]
ACTIONS = ["/runs/{run}/cancel/", "/runs/{run}/messages/"]


@pytest.mark.parametrize("path", [*PAGES, *ACTIONS, "/runs/{run}/files/report.md"])
def test_visitors_are_sent_to_sign_in(path: str, run: str) -> None:
    path = path.format(run=run)
    for response in (Client().get(path), Client().post(path)):
        assert response.status_code == 302
        assert response["Location"] == f"/login/?next={path}"


@pytest.mark.parametrize("path", [*PAGES[2:], "/runs/{run}/files/report.md"])
def test_another_users_run_is_not_found(path: str, run: str, sign_in: SignIn) -> None:
    assert sign_in("peter").get(path.format(run=run)).status_code == 404


@pytest.mark.parametrize("path", ACTIONS)
def test_another_users_run_cannot_be_acted_on(path: str, run: str, sign_in: SignIn) -> None:
    answer = sign_in("peter").post(path.format(run=run), {"message": "hi"})
    assert answer.status_code == 404
    assert site_writer.run(run)["status"] == "queued"
    assert site_writer.newest_run() == run


@pytest.mark.parametrize("path", ACTIONS)
def test_actions_are_posts_with_the_pages_token(path: str, run: str, sign_in: SignIn) -> None:
    olga = sign_in("olga")
    assert olga.get(path.format(run=run)).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(get_user_model().objects.get(username="olga"))
    assert strict.post(path.format(run=run), {"message": "hi"}).status_code == 403
    assert site_writer.run(run)["status"] == "queued"


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", ["/login/", *PAGES])
def test_pages_allow_only_the_sites_own_files(path: str, run: str, sign_in: SignIn) -> None:
    client = Client() if path == "/login/" else sign_in("olga")
    response = client.get(path.format(run=run))
    assert response.status_code == 200
    policy = response["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "no-store" in response["Cache-Control"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"


@pytest.mark.slow_cases
@pytest.mark.parametrize("path", ["/login/", *PAGES[:3]])
def test_pages_keep_the_policy_they_send(path: str, run: str, sign_in: SignIn) -> None:
    client = Client() if path == "/login/" else sign_in("olga")
    html = client.get(path.format(run=run)).content.decode()
    assert not re.search(r"<script(?![^>]* src=)", html)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)
    assert not re.search(r"""(src|href|action)=["'](https?:)?//""", html)


def test_text_of_people_stays_text_and_hides_nothing(run: str, sign_in: SignIn) -> None:
    olga = sign_in("olga")
    for path in ("/", "/runs/", f"/runs/{run}/"):
        html = olga.get(path).content.decode()
        assert "Hello &lt;b&gt;there&lt;/b&gt;⟨U+202E⟩" in html
        assert "<b>there" not in html
        assert "\u202e" not in html


def test_signing_in_leads_to_the_page_that_was_wanted(db: None) -> None:
    site_writer.make_user("olga", password="a-long-enough-password")
    client = Client()
    answers = {"username": "olga", "password": "a-long-enough-password", "next": "/runs/"}
    assert client.post("/login/", answers)["Location"] == "/runs/"
    assert client.get("/runs/").status_code == 200


def test_signing_in_leads_to_no_other_site(db: None) -> None:
    site_writer.make_user("olga", password="a-long-enough-password")
    answers = {"username": "olga", "password": "a-long-enough-password"}
    answer = Client().post("/login/", {**answers, "next": "https://evil.example/"})
    assert answer["Location"] == "/"


def test_a_wrong_password_is_reported_on_the_page(db: None) -> None:
    answer = Client().post("/login/", {"username": "olga", "password": "wrong"})
    assert answer.status_code == 200
    assert 'role="alert"' in answer.content.decode()


def test_signing_out_takes_a_post(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    assert olga.get("/logout/").status_code == 405
    assert olga.get("/").status_code == 200
    assert olga.post("/logout/")["Location"] == "/login/"
    assert olga.get("/").status_code == 302


def test_an_unknown_path_has_its_own_page(sign_in: SignIn) -> None:
    answer = sign_in("olga").get("/nothing-here/")
    assert answer.status_code == 404
    assert "Not found" in answer.content.decode()

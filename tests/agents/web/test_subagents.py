"""The subagents on a run's page, and who may see them."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from agents.models import Run
from tests.agents.web.asking import HOSTILE
from tests.agents.web.conftest import SignIn
from tests.support import site_writer

pytestmark = pytest.mark.django_db


def shown(client: Client, run: str) -> list[str]:
    summary = client.get(f"/runs/{run}/summary/").json()
    return [card["path"] for card in summary["approvals"]]


@pytest.mark.slow
def test_the_page_links_the_requests_of_all_subagents(run: str, sign_in: SignIn) -> None:
    child = site_writer.make_child(run)
    deeper = site_writer.make_child(child, name="plan")
    for asking in (deeper, child):
        site_writer.ask(asking, "send", {})
    olga = sign_in("olga")
    assert shown(olga, run) == ["Assistant › explore › plan", "Assistant › explore"]
    assert shown(olga, child) == shown(olga, run)
    assert shown(olga, deeper) == ["Assistant › explore › plan"]


def test_requests_of_subagents_that_are_not_for_oneself_are_counted(
    run: str, sign_in: SignIn
) -> None:
    site_writer.ask(site_writer.make_child(run), "send", {"text": "secret"})
    vera = sign_in("vera")
    person = get_user_model().objects.get(username="vera")
    person.user_permissions.add(Permission.objects.get(codename="view_all_runs"))
    answer = vera.get(f"/runs/{run}/summary/")
    assert (answer.json()["approvals"], answer.json()["for_others"]) == ([], 1)
    assert b"secret" not in answer.content


def test_the_page_of_a_subagent_names_the_way_to_it_and_takes_no_message(
    run: str, sign_in: SignIn
) -> None:
    child = site_writer.make_child(run, task="Look at it", name="explore")
    Run.objects.filter(pk=child).update(subagent=HOSTILE)
    olga = sign_in("olga")
    html = olga.get(f"/runs/{child}/").content.decode()
    assert f'<a href="/runs/{run}/">Assistant</a> › &lt;script&gt;' in html
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert 'name="message"' not in html
    assert olga.post(f"/runs/{child}/messages/", {"message": "hi"}).status_code == 404
    assert Run.objects.get(pk=child).status == "queued"


def test_a_stranger_finds_no_page_and_no_summary(run: str, sign_in: SignIn) -> None:
    child = site_writer.make_child(run)
    eve = sign_in("eve")
    for url in ("", "summary/", "changes/", "files/a.txt"):
        assert eve.get(f"/runs/{child}/{url}").status_code == 404
    assert eve.post(f"/runs/{child}/cancel/").status_code == 404
    assert Run.objects.get(pk=child).status == "queued"


def test_an_approver_of_a_subagent_sees_its_page_and_not_that_of_its_parent(
    run: str, sign_in: SignIn
) -> None:
    child = site_writer.make_child(run)
    site_writer.ask(child, "send", {})
    ada = sign_in("ada", approver=True)
    html = ada.get(f"/runs/{child}/").content.decode()
    assert "Assistant › explore" in html
    assert f'href="/runs/{run}/"' not in html
    assert ada.get(f"/runs/{run}/").status_code == 404


def test_the_owner_ends_a_subagent_on_its_page(run: str, sign_in: SignIn) -> None:
    child = site_writer.make_child(run)
    sign_in("olga").post(f"/runs/{child}/cancel/")
    assert Run.objects.get(pk=child).status == "cancelled"
    assert Run.objects.get(pk=run).status == "queued"


def test_lists_contain_only_runs_started_by_people(run: str, sign_in: SignIn) -> None:
    child = site_writer.make_child(run)
    olga = sign_in("olga")
    for url in ("/", "/runs/"):
        html = olga.get(url).content.decode()
        assert f"/runs/{run}/" in html
        assert child not in html

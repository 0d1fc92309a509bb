"""Start runs from the first page, and find them again."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model

from agents.models import Agent, Run
from agents.services.agent_definitions.actions import save_agent
from agents.services.demo import ensure_demo_agent
from tests.agents.web.conftest import SignIn
from tests.support import site_writer


def make_agent(slug: str, **fields: object) -> None:
    save_agent(Agent(name=slug.title(), slug=slug, provider="scripted", **fields))


def test_the_form_starts_a_run_and_goes_to_its_page(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    make_agent("helper", everyone=True)

    answer = olga.post("/", {"agent": "helper", "message": "Line one\r\nLine two", "key": "k1"})

    started = Run.objects.get()
    assert answer["Location"] == f"/runs/{started.id}/"
    assert started.owner.get_username() == "olga"
    assert started.source == "web"
    assert site_writer.run(started.id)["text"] == "Line one\nLine two"


def test_a_form_that_is_sent_twice_starts_one_run(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    make_agent("helper", everyone=True)

    form = {"agent": "helper", "message": "Once", "key": olga.get("/").context["key"]}
    places = [olga.post("/", form)["Location"] for _ in range(2)]

    assert places[0] == places[1]
    assert Run.objects.count() == 1


def test_an_invalid_form_is_reported_and_keeps_its_text(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    make_agent("helper", everyone=True)
    make_agent("private")

    answer = olga.post("/", {"agent": "private", "message": "Do <this>", "key": "k1"})

    assert answer.status_code == 400
    html = answer.content.decode()
    assert "no agent &#x27;private&#x27; that you may use" in html
    assert "Do &lt;this&gt;</textarea>" in html
    assert olga.post("/", {"agent": "helper", "message": " "}).status_code == 400
    assert not Run.objects.exists()


def test_only_agents_that_one_may_use_are_offered(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    assert "do not have access to an agent" in olga.get("/").content.decode()
    make_agent("helper", everyone=True)
    make_agent("private")
    make_agent("retired", everyone=True, is_active=False)

    html = olga.get("/").content.decode()

    assert 'value="helper"' in html
    assert "offline scripted model" in html
    assert "private" not in html
    assert "retired" not in html


@pytest.mark.slow
def test_the_history_holds_the_own_runs_by_status(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    sign_in("peter")
    done, waiting = (site_writer.make_run("olga") for _ in range(2))
    foreign = site_writer.make_run("peter")
    Run.objects.filter(pk=done).update(status="completed")

    def shown(query: str = "") -> set[str]:
        html = olga.get(f"/runs/{query}").content.decode()
        return {run for run in (done, waiting, foreign) if f"/runs/{run}/" in html}

    assert shown() == {done, waiting}
    assert shown("?status=completed") == {done}
    assert shown("?status=failed") == set()
    assert shown("?status=nonsense") == {done, waiting}
    assert shown("?after=nonsense%00") == {done, waiting}
    assert shown("?after=0") == set()


@pytest.mark.slow
def test_a_long_history_has_pages(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    first = site_writer.make_run("olga")
    for _ in range(30):
        site_writer.make_run("olga")

    page = olga.get("/runs/").content.decode()
    assert f"/runs/{first}/" not in page
    [older] = re.findall(r'rel="next" href="([^"]+)"', page)
    page = olga.get(f"/runs/{older}").content.decode()
    assert f"/runs/{first}/" in page
    assert 'rel="next"' not in page


@pytest.mark.bubblewrap
def test_the_demo_has_a_button_if_it_exists(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    assert not olga.get("/").context["has_demo"]
    ensure_demo_agent()
    assert olga.get("/").context["has_demo"]
    assert olga.get("/demo/").status_code == 405

    answer = olga.post("/demo/")

    started = Run.objects.get()
    assert answer["Location"] == f"/runs/{started.id}/"
    assert (started.owner.get_username(), started.source) == ("olga", "web")


def test_a_demo_of_another_owner_is_refused_with_a_reason(sign_in: SignIn) -> None:
    olga = sign_in("olga")
    make_agent("demo", everyone=True, owner=get_user_model().objects.get(username="olga"))

    answer = olga.post("/demo/")

    assert answer.status_code == 400
    assert "belongs to a user" in answer.content.decode()
    assert not Run.objects.exists()

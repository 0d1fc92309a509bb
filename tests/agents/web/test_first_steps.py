"""The first steps on the home page of an administrator."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from agents.models import Agent
from tests.agents.web.asking import ask, decide
from tests.agents.web.conftest import SignIn

pytestmark = pytest.mark.django_db


def home(client: Client) -> str:
    return str(client.get("/").content.decode())


def done(client: Client) -> int:
    return home(client).count('class="done"')


def test_only_administrators_see_them(sign_in: SignIn) -> None:
    assert "First steps" in home(sign_in("root", superuser=True))
    assert "First steps" not in home(sign_in("peter"))


def test_a_step_is_done_when_the_database_says_so(run: str, sign_in: SignIn) -> None:
    get_user_model().objects.exclude(username="olga").update(is_active=False)
    get_user_model().objects.filter(username="olga").update(is_superuser=True)
    olga = sign_in("olga")
    Agent.objects.update(slug="assistant")
    request = ask(run)
    assert done(olga) == 0
    decide(olga, request, "approve")
    assert done(olga) == 1
    Agent.objects.update(slug="own")
    assert done(olga) == 2
    get_user_model().objects.create_user("colleague")
    assert done(olga) == 3


def test_they_end_when_all_are_done(run: str, sign_in: SignIn, settings: Any) -> None:
    root = sign_in("root", superuser=True)
    decide(sign_in("olga"), ask(run), "approve")
    Agent.objects.update(slug="own")
    assert done(root) == 3
    settings.VEL = {**settings.VEL, "ANTHROPIC_API_KEY": "key"}
    assert "First steps" not in home(root)


def test_hiding_needs_the_token_of_the_page_and_hides_them_in_this_browser(
    sign_in: SignIn,
) -> None:
    root = sign_in("root", superuser=True)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = root.cookies
    assert strict.post("/first-steps/hide/").status_code == 403
    assert root.get("/first-steps/hide/").status_code == 405
    assert root.post("/first-steps/hide/")["Location"] == "/"
    assert "First steps" not in home(root)
    assert "First steps" in home(sign_in("root", superuser=True))

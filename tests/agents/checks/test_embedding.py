"""System checks name the missing parts of a project and how to add them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import clear_url_caches, include, path
from pytest_django.fixtures import Settings

from agents.checks import embedding
from velproject import settings as own

CSRF = "django.middleware.csrf.CsrfViewMiddleware"
AUTH = "django.contrib.auth.middleware.AuthenticationMiddleware"
ORIGIN = "agents.request_origin.request_origin"


class StricterCsrf(CsrfViewMiddleware):
    """A subclass in a project."""


class Elsewhere:
    """A router that sends the models of one app to another database."""

    def __init__(self, label: str) -> None:
        self._label = label

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "other" if model._meta.app_label == self._label else None


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


@pytest.fixture(autouse=True)
def _urls() -> Any:
    clear_url_caches()
    yield
    clear_url_caches()


def found() -> list[str]:
    messages = [*embedding.check_project(None), *embedding.check_doors(None)]
    assert all(message.hint for message in messages)
    return [str(message.id) for message in messages]


def mount(settings: Settings, *patterns: Any) -> None:
    urls = ModuleType("urls_of_a_test")
    urls.urlpatterns = list(patterns)  # type: ignore[attr-defined]
    settings.ROOT_URLCONF = urls
    clear_url_caches()


def test_vels_own_project_has_all_that_is_needed() -> None:
    assert found() == []


@pytest.mark.parametrize("name", [CSRF, AUTH, ORIGIN])
def test_a_missing_middleware_is_named(settings: Settings, name: str) -> None:
    settings.MIDDLEWARE = [each for each in own.MIDDLEWARE if each != name]
    assert found() == ["vel.E026"]
    assert name in embedding.check_doors(None)[0].msg


def test_a_subclass_of_a_middleware_will_do(settings: Settings) -> None:
    own_csrf = f"{__name__}.{StricterCsrf.__name__}"
    settings.MIDDLEWARE = [own_csrf if each == CSRF else each for each in own.MIDDLEWARE]
    assert found() == []


def test_the_origin_middleware_must_follow_authentication(settings: Settings) -> None:
    settings.MIDDLEWARE = [ORIGIN, *(each for each in own.MIDDLEWARE if each != ORIGIN)]
    assert found() == ["vel.E026"]


def test_a_project_without_doors_needs_no_middleware(settings: Settings) -> None:
    mount(settings)
    settings.MIDDLEWARE = []
    settings.LOGIN_URL = "nowhere"
    assert found() == []


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("USE_TZ", False, "vel.E022"),
        ("DATABASE_ROUTERS", [Elsewhere("memory")], "vel.E023"),
        ("DATABASE_ROUTERS", [Elsewhere("auth")], "vel.E023"),
        ("Q_CLUSTER", {"orm": "default", "sync": True}, "vel.E024"),
        ("Q_CLUSTER", {"redis": {}}, "vel.W021"),
        ("CSRF_USE_SESSIONS", True, "vel.W022"),
        ("LOGIN_URL", "nowhere", "vel.E027"),
        ("LOGIN_URL", "/accounts/login/", "vel.W023"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(
    settings: Settings, name: str, value: object, problem: str
) -> None:
    setattr(settings, name, value)
    assert found() == [problem]


@pytest.mark.parametrize(
    "url", ["/login/", "/login", "/login/?next=/", "https://id.example.org/in"]
)
def test_the_address_of_a_login_page_may_be_a_path_or_another_server(
    settings: Settings, url: str
) -> None:
    settings.LOGIN_URL = url
    assert found() == []


def test_templates_that_are_not_found_are_named(settings: Settings) -> None:
    settings.TEMPLATES = [{**own.TEMPLATES[0], "DIRS": []}]
    assert found() == ["vel.E028", "vel.E028"]


def test_another_set_of_urls_with_the_same_name_is_named(settings: Settings) -> None:
    theirs = ([path("runs", view, name="runs")], "api")
    mount(settings, path("api/", include(theirs)), path("vel/", include("agents.api.urls")))
    assert "vel.E025" in found()


def test_urls_within_a_namespace_are_named(settings: Settings) -> None:
    inner = ([path("api/", include("agents.api.urls"))], "vel")
    mount(settings, path("vel/", include(inner)))
    assert found() == ["vel.E025"]

"""Request limits count over all web processes, without a database write for each request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import RequestCount
from agents.services.request_rates import forget_shares, wait_for
from agents.services.tokens import create_token
from agents.settings import LimitSettings
from tests.agents.api.rows import client_for, client_with, make_user, problem_of
from tests.agents.api.test_idempotency import in_processes
from tests.support.one_minute import Clock

pytestmark = pytest.mark.usefixtures("one_minute")
NOISE = "vel_" + "x" * 43


@pytest.fixture
def limits(settings: Any) -> Callable[..., None]:
    def set_limits(**given: int) -> None:
        names = {"user": "API_USER_REQUESTS", "token": "API_TOKEN_REQUESTS"}
        names["failed"] = "API_FAILED_SIGN_INS"
        settings.VEL = {**settings.VEL, **{names[name]: value for name, value in given.items()}}

    return set_limits


def statuses(client: Any, count: int, url: str = "/api/v1/agents") -> list[int]:
    return [client.get(url).status_code for _ in range(count)]


def test_limits_exist_by_default() -> None:
    defaults = LimitSettings()
    assert defaults.API_USER_REQUESTS == 1_200
    assert defaults.API_TOKEN_REQUESTS == 600
    assert defaults.API_FAILED_SIGN_INS == 60


@pytest.mark.django_db
def test_a_token_and_a_person_have_limits(limits: Callable[..., None]) -> None:
    limits(user=5, token=3)
    ann = make_user("ann")
    first, second, third = client_for(ann), client_for(ann), client_for(make_user("bob"))
    assert statuses(first, 4) == [200, 200, 200, 429]
    # The refused request counted only for the token.
    assert statuses(second, 3) == [200, 200, 429]
    assert statuses(third, 2) == [200, 200]
    response = first.get("/api/v1/agents")
    problem = problem_of(response)
    assert (problem["code"], response["Retry-After"]) == ("throttled", "50")
    assert "3 requests a minute" in problem["detail"]


@pytest.mark.django_db
def test_the_limit_restarts_each_minute(
    limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(user=1)
    client = client_for(make_user("ann"))
    assert statuses(client, 2) == [200, 429]
    monkeypatch.setattr(Clock, "now", Clock.now + 60)
    assert statuses(client, 2) == [200, 429]
    assert RequestCount.objects.count() == 1


@pytest.mark.django_db
def test_forbidden_requests_count_too(limits: Callable[..., None]) -> None:
    limits(token=2)
    client = client_for(make_user("ann"), "run")
    assert statuses(client, 3) == [403, 403, 429]


@pytest.mark.django_db
def test_sessions_count_for_the_person(limits: Callable[..., None]) -> None:
    limits(user=2)
    ann = make_user("ann")
    client = client_for(ann)
    assert statuses(client, 1) == [200]
    client.credentials()
    client.force_login(ann)
    assert statuses(client, 2) == [200, 429]


@pytest.mark.django_db
def test_invalid_tokens_are_limited_by_address(limits: Callable[..., None]) -> None:
    limits(failed=3)
    assert statuses(client_with(NOISE), 5) == [401, 401, 401, 429, 429]
    assert "Retry-After" in client_with(NOISE).get("/api/v1/agents")
    elsewhere = client_with(NOISE)
    elsewhere.defaults["REMOTE_ADDR"] = "192.0.2.7"
    assert statuses(elsewhere, 1) == [401]
    # Behind a proxy all clients have one address: invalid tokens of one do not lock out the others.
    assert statuses(client_for(make_user("ann")), 1) == [200]
    # A header that a client can set does not change its address.
    other = client_with(NOISE).get("/api/v1/agents", headers={"X-Forwarded-For": "192.0.2.9"})
    assert other.status_code == 429


@pytest.mark.both_databases
@pytest.mark.django_db
def test_an_address_of_version_6_is_its_network(limits: Callable[..., None]) -> None:
    limits(failed=1)
    for last, status in (("1", 401), ("2", 429), ("ffff:1", 429)):
        client = client_with(NOISE)
        client.defaults["REMOTE_ADDR"] = f"2001:db8:0:7::{last}"
        assert statuses(client, 1) == [status]


@pytest.mark.both_databases
@pytest.mark.django_db
def test_few_requests_write(limits: Callable[..., None]) -> None:
    limits(user=1_200)
    with CaptureQueriesContext(connection) as captured:
        assert [wait_for("user:7", 1_200) for _ in range(1_200)] == [0] * 1_200
        assert wait_for("user:7", 1_200) == 50
        assert wait_for("user:7", 1_200) == 50
    inserts = [query for query in captured if query["sql"].startswith("INSERT")]
    assert len(inserts) == 51


@pytest.mark.django_db
def test_without_a_limit_nothing_is_written() -> None:
    assert [wait_for("user:7", 0) for _ in range(3)] == [0, 0, 0]
    assert not RequestCount.objects.exists()


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_several_processes_have_one_limit() -> None:
    def take() -> int:
        forget_shares()
        return sum(wait_for("user:7", 100) == 0 for _ in range(80))

    found = in_processes(take, 3)
    assert 94 <= sum(found) <= 100, found


@pytest.mark.django_db
def test_old_counts_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for("address:192.0.2.1", 10)
    monkeypatch.setattr(Clock, "now", Clock.now + 3 * 3600)
    wait_for("user:7", 10)
    assert list(RequestCount.objects.values_list("subject", flat=True)) == ["user:7"]
    _, secret = create_token(make_user("ann"))
    assert client_with(secret).get("/api/v1/agents").status_code == 200

"""Authentication of callers, and their request limits."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.features.mcp_server.caller import Caller, Refused, caller_of, check_still_good
from agents.models import ApiToken
from agents.services.errors import NotAllowed
from agents.services.tokens import create_token
from tests.agents.api.rows import make_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_minute")]


@pytest.fixture
def ann() -> User:
    return make_user("ann")


def known(secret: str, keyword: str = "Bearer") -> Caller:
    meta = {"HTTP_AUTHORIZATION": f"{keyword} {secret}", "REMOTE_ADDR": "192.0.2.1"}
    return caller_of(meta, "")


def status(secret: str) -> int:
    with pytest.raises(Refused) as refused:
        known(secret)
    return refused.value.status


def test_a_valid_token_identifies_its_person(ann: User) -> None:
    token, secret = create_token(ann, scopes=["mcp"])
    caller = known(secret)
    assert (caller.user, caller.token) == (ann, token)
    assert known(secret, "Token").user == known(secret, "bearer").user == ann
    assert secret not in repr(caller)


def test_an_expired_token_or_one_of_an_inactive_person_is_refused(ann: User) -> None:
    token, secret = create_token(ann, scopes=["mcp"])
    caller = known(secret)
    check_still_good(caller)
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    assert status(secret) == 401
    with pytest.raises(NotAllowed):
        check_still_good(caller)
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=None)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert status(secret) == 401
    with pytest.raises(NotAllowed):
        check_still_good(caller)


def test_scopes_that_were_taken_away_end_a_wait(ann: User) -> None:
    token, secret = create_token(ann, scopes=["read", "run"])
    caller = known(secret)
    ApiToken.objects.filter(pk=token.pk).update(scopes=["run"])
    with pytest.raises(NotAllowed):
        check_still_good(caller)


def test_requests_count_for_the_token_and_for_its_person(ann: User, settings: Any) -> None:
    _, first = create_token(ann, scopes=["mcp"])
    _, second = create_token(ann, scopes=["mcp"])
    settings.VEL = {**settings.VEL, "API_TOKEN_REQUESTS": 3, "API_USER_REQUESTS": 5}
    assert [_try(first) for _ in range(4)] == [200, 200, 200, 429]
    assert [_try(second) for _ in range(3)] == [200, 200, 429]


def test_invalid_tokens_count_for_the_address(ann: User, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "API_FAILED_SIGN_INS": 2}
    assert [status("vel_none") for _ in range(3)] == [401, 401, 429]
    _, good = create_token(ann, scopes=["mcp"])
    assert known(good).user == ann


def _try(secret: str) -> int:
    try:
        known(secret)
    except Refused as refused:
        return refused.status if refused.wait > 0 else 0
    return 200

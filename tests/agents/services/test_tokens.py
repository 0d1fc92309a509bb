"""The scopes and the lifetime of tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import ApiToken
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.tokens import (
    MAX_DAYS,
    MAX_OWN_DAYS,
    MAX_OWN_TOKENS,
    authenticate_token,
    create_own_token,
    create_token,
    revoke_own_token,
    revoke_token,
)
from tests.agents.api.rows import make_user
from tests.agents.engine.by_hand import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.mark.parametrize(
    "fields",
    [
        {"scopes": []},
        {"scopes": ["read", "root"]},
        {"scopes": ["session"]},
        {"days": 0},
        {"days": MAX_DAYS + 1},
        {"name": "x" * 101},
        {"name": "two\nlines"},
        {"name": "a\u202eb"},
    ],
)
def test_invalid_tokens_are_refused(ann: User, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        create_token(ann, **fields)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("fields", [{"days": MAX_OWN_DAYS + 1}, {"days": 0}, {"name": " "}])
def test_ones_own_token_has_a_name_and_an_end(ann: User, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        create_own_token(ann, **{"name": "backup", "scopes": ["read"], "days": 30, **fields})
    assert not ApiToken.objects.exists()


def test_only_tokens_in_force_count_for_how_many_one_has(ann: User) -> None:
    tokens = [create_token(ann)[0] for _ in range(MAX_OWN_TOKENS)]
    more: dict[str, Any] = {"name": "more", "scopes": ["read"], "days": 1}
    with pytest.raises(Conflict):
        create_own_token(ann, **more)
    revoke_token(tokens[0].pk)
    create_own_token(ann, **more)
    ApiToken.objects.filter(pk=tokens[1].pk).update(expires_at=timezone.now())
    create_own_token(ann, **more)
    with pytest.raises(Conflict):
        create_own_token(ann, **more)
    create_own_token(make_user("bob"), **more)


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_creations_only_one_fits_the_limit() -> None:
    bob = make_user("bob")
    for _ in range(MAX_OWN_TOKENS - 1):
        create_token(bob)
    done = at_once(
        lambda: create_own_token(bob, name="one", scopes=["read"], days=1),
        lambda: create_own_token(bob, name="two", scopes=["read"], days=1),
    )
    assert sorted(isinstance(one, Conflict) for one in done) == [False, True]
    assert ApiToken.objects.count() == MAX_OWN_TOKENS


def test_an_expired_token_gives_no_access(ann: User) -> None:
    expired, revoked, living = (create_token(ann, days=1) for _ in range(3))
    moment = timezone.now() - timedelta(seconds=1)
    ApiToken.objects.filter(pk=expired[0].pk).update(expires_at=moment)
    revoke_own_token(revoked[0].pk, by=ann)
    assert [authenticate_token(secret) for _, secret in (expired, revoked)] == [None, None]
    assert authenticate_token(living[1]) == living[0]
    # The stored digest is not a valid token.
    assert authenticate_token(living[0].digest) is None


def test_only_its_owner_ends_a_token(ann: User) -> None:
    token, secret = create_token(ann)
    with pytest.raises(NotFound):
        revoke_own_token(token.pk, by=make_user("root", superuser=True))
    assert authenticate_token(secret) == token

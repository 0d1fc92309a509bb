"""Users of the pages, and their runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.support import site_writer

SignIn = Callable[..., Client]


@pytest.fixture
def sign_in(db: None) -> SignIn:
    """`sign_in("olga")` returns a signed-in client, and creates the user if needed."""

    def make(name: str, *, approver: bool = False, superuser: bool = False) -> Client:
        users = get_user_model().objects
        if not users.filter(username=name).exists():
            site_writer.make_user(name, approver=approver)
            users.filter(username=name).update(is_superuser=superuser)
        client = Client(raise_request_exception=True)
        client.force_login(users.get(username=name))
        return client

    return make


@pytest.fixture
def run(sign_in: SignIn) -> str:
    """Create a run of olga's."""
    sign_in("olga")
    return site_writer.make_run("olga", "Hello <b>there</b>\u202e")

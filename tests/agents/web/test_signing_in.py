"""How often a password may be guessed."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from agents.services.request_rates import forget_shares

pytestmark = pytest.mark.django_db
RIGHT = {"username": "olga", "password": "analytical engine"}


@pytest.fixture(autouse=True)
def limit(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "SIGN_INS": 3}
    forget_shares()
    get_user_model().objects.create_superuser("olga", password=RIGHT["password"])


def guess(path: str, name: str = "olga", address: str = "192.0.2.1") -> int:
    given = {"username": name, "password": "wrong"}
    return Client(REMOTE_ADDR=address).post(path, given).status_code


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_a_name_is_tried_so_often_from_one_address(path: str) -> None:
    assert [guess(path) for _ in range(5)] == [200, 200, 200, 429, 429]
    # Upper case, and the other page, are the same name.
    assert guess(path, "OLGA") == 429
    assert guess("/login/") == guess("/admin/login/") == 429
    answer = Client(REMOTE_ADDR="192.0.2.1").post(path, RIGHT)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    # Other names, and the owner somewhere else, are not locked out.
    assert guess(path, "ada") == 200
    assert Client(REMOTE_ADDR="192.0.2.2").post(path, RIGHT).status_code == 302

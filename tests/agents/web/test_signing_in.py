"""The limit of password attempts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from agents.models import AuditEntry
from velproject.web import sign_ins

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_minute")]
RIGHT = {"username": "olga", "password": "analytical engine"}


@pytest.fixture(autouse=True)
def limit(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "SIGN_INS": 3, "ADDRESS_SIGN_INS": 8}
    get_user_model().objects.create_superuser("olga", password=RIGHT["password"])


def guess(path: str, name: str = "olga", address: str = "192.0.2.1") -> int:
    given = {"username": name, "password": "wrong"}
    return Client(REMOTE_ADDR=address).post(path, given).status_code


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_a_name_is_tried_so_often_from_one_address(path: str) -> None:
    assert [guess(path) for _ in range(5)] == [200, 200, 200, 429, 429]
    # Upper case and the other page count for the same name.
    assert guess(path, "OLGA") == 429
    assert guess("/login/") == guess("/admin/login/") == 429
    answer = Client(REMOTE_ADDR="192.0.2.1").post(path, RIGHT)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    # Other names, and the owner at another address, are not locked out.
    assert guess(path, "ada") == 200
    assert Client(REMOTE_ADDR="192.0.2.2").post(path, RIGHT).status_code == 302


@pytest.mark.parametrize(
    "spelling",
    [
        "\uff4f\uff4c\uff47\uff41",  # full width
        "\U0001d428lga",  # a mathematical letter
        " olga\u3000",
        "\u2134LG\u1d2c",
    ],
)
def test_all_spellings_that_django_takes_for_one_name_count_together(spelling: str) -> None:
    assert [guess("/login/") for _ in range(4)] == [200, 200, 200, 429]
    assert guess("/login/", spelling) == 429


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_a_name_of_many_marks_is_counted_in_no_time(path: str) -> None:
    guess(path)  # the first request loads modules, which are not measured
    begun = time.process_time()
    assert guess(path, "a" + "\u0301\u0327" * 100_000) == 200
    assert time.process_time() - begun < 5  # under 0.1 s; sorting all marks would be a minute


def test_one_address_cannot_try_a_password_with_many_names() -> None:
    assert [guess("/login/", f"name-{number}") for number in range(8)] == [200] * 8
    assert guess("/admin/login/", "another") == guess("/login/", "olga") == 429
    assert guess("/login/", "olga", address="192.0.2.2") == 200


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_sign_ins_are_in_the_audit_log_without_anything_that_was_typed(path: str) -> None:
    olga = get_user_model().objects.get()
    guess(path)
    guess(path, "correct horse battery staple")
    Client(REMOTE_ADDR="192.0.2.7").post(path, RIGHT)
    refused, unknown, done = AuditEntry.objects.order_by("id")
    assert (refused.action, refused.target, refused.target_id, refused.actor) == (
        *("user.sign_in_refused", "olga", str(olga.pk)),
        "",
    )
    assert refused.address == "192.0.2.1"
    assert (unknown.action, unknown.target) == ("user.sign_in_refused", "user")
    assert (done.action, done.actor, done.address) == ("user.signed_in", "olga", "192.0.2.7")
    for entry in (refused, unknown, done):
        assert not {"wrong", RIGHT["password"]} & set(map(str, vars(entry).values()))
        assert "battery" not in str(vars(entry))


def test_refused_sign_ins_from_many_addresses_do_not_fill_the_audit_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_ins, "MOST_FAILURES", 2)
    for number in range(4):
        assert guess("/login/", address=f"192.0.2.{number}") == 200
    assert AuditEntry.objects.count() == 2


@pytest.mark.parametrize("path", ["/profile/password/", "/admin/password_change/"])
def test_a_stolen_session_cannot_guess_the_password(path: str) -> None:
    person = get_user_model().objects.get(username="olga")
    new = "entirely-different-words"
    given = {"old_password": "wrong", "new_password1": new, "new_password2": new}
    codes = []
    for number in range(4):  # a new session and a new address do not help
        browser = Client(REMOTE_ADDR=f"192.0.2.{number}")
        browser.force_login(person)
        codes.append(browser.post(path, given).status_code)
    assert codes == [200, 200, 200, 429]
    assert browser.get(path).status_code == 200
    right = {**given, "old_password": RIGHT["password"]}
    assert browser.post(path, right).status_code == 429
    person.refresh_from_db()
    assert person.check_password(RIGHT["password"])

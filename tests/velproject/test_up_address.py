"""Links in notifications use the address of `vel up`, unless a setting has another address."""

from __future__ import annotations

import pytest

from tests.velproject.command import Vel
from tests.velproject.test_up import public_url_of, running
from velproject.cli.commands.machines.up import local_url


def test_an_empty_setting_is_like_none(vel: Vel) -> None:
    vel.environment["VEL_PUBLIC_URL"] = ""
    with running(vel) as up:
        for role in ("web", "workers"):
            assert public_url_of(up.main_of(role)) == f"http://127.0.0.1:{up.port}"


def test_what_was_said_stays(vel: Vel) -> None:
    vel.environment["VEL_PUBLIC_URL"] = "https://vel.example.org"
    with running(vel) as up:
        for role in ("web", "workers"):
            assert public_url_of(up.main_of(role)) == "https://vel.example.org"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000"),
        ("localhost", "http://localhost:9000"),
        ("192.0.2.7", "http://192.0.2.7:9000"),
        ("0.0.0.0", "http://127.0.0.1:9000"),
        ("::", "http://127.0.0.1:9000"),
        ("::1", "http://[::1]:9000"),
        ("2001:db8::7", "http://[2001:db8::7]:9000"),
    ],
)
def test_the_address_of_a_host(host: str, url: str) -> None:
    assert local_url(host, 9000) == url

"""`EMAIL_URL` and `VEL_PUBLIC_URL` as the settings read them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.kernel.settings import read_environment
from agents.settings import PageSettings
from velproject.env import mail_server


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("", ("localhost", 25, "", "", False, False)),
        ("smtp://mail", ("mail", 25, "", "", False, False)),
        ("submission://ada:p%40ss@mail", ("mail", 587, "ada", "p@ss", True, False)),
        ("smtps://ada:pass@mail:4650", ("mail", 4650, "ada", "pass", False, True)),
    ],
)
def test_urls_of_mail_servers(url: str, wanted: tuple[object, ...]) -> None:
    assert tuple(mail_server(url).values()) == wanted


@pytest.mark.parametrize(
    "url", ["mail", "imap://mail", "smtp://", "smtp://mail:x", "smtp://ada:pass@mail"]
)
def test_invalid_or_unsafe_settings_are_an_error_without_the_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL") as refused:
        mail_server(url)
    assert "pass@" not in str(refused.value)


def test_the_public_url() -> None:
    def read(url: str) -> Any:
        return read_environment([PageSettings], {"VEL_PUBLIC_URL": url})["VEL"]["PUBLIC_URL"]

    assert read("https://vel.example.org/") == "https://vel.example.org"
    for wrong in ("vel.example.org", "javascript://x", "https://", "https://x/?a=b"):
        with pytest.raises(ImproperlyConfigured, match="VEL_PUBLIC_URL: expected a URL like"):
            read(wrong)

"""The manifest of the installed app, and the policy for it."""

from __future__ import annotations

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from agents.doors.web.page_policy import CONTENT_SECURITY_POLICY

pytestmark = pytest.mark.django_db


def test_the_manifest_is_the_same_for_everybody_and_sets_no_cookie() -> None:
    response = Client().get("/app.webmanifest")
    assert response.status_code == 200
    assert response["Content-Type"] == "application/manifest+json"
    assert (response.json()["start_url"], response.json()["scope"]) == ("/", "/")
    assert not response.cookies


def test_each_icon_exists_with_its_size() -> None:
    icons = Client().get("/app.webmanifest").json()["icons"]
    assert {icon["purpose"] for icon in icons} == {"any", "maskable"}
    for icon in icons:
        found = finders.find(icon["src"].removeprefix("/static/"))
        assert isinstance(found, str)
        with open(found, "rb") as file:
            header = file.read(24)
        width, height = (int.from_bytes(header[at : at + 4]) for at in (16, 20))
        assert f"{width}x{height}" == icon["sizes"]


def test_pages_can_start_no_worker() -> None:
    assert "worker-src 'none'" in CONTENT_SECURITY_POLICY
    assert "manifest-src 'self'" in CONTENT_SECURITY_POLICY

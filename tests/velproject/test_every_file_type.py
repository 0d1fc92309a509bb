"""No browser opens a file of any type as a page, at any door that sends files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from django.contrib.auth import get_user_model
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.services.open_connections import open_now, take_place
from agents.settings import DataSettings
from tests.support import site_writer
from tests.support.skills import package, store_skill
from tests.velproject.test_every_address import let_go, wrong_headers

pytestmark = pytest.mark.django_db

HARMLESS = {"application/octet-stream", "application/zip", "text/plain; charset=utf-8"}
SCRIPT = b"<html><script>alert(1)</script>"
FILES = {
    "page.html": SCRIPT,
    "page.xhtml": b'<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>',
    "image.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "code.js": b"alert(1)",
    "code.mjs": b"alert(1)",
    "style.css": b"body { display: none }",
    "feed.xml": b'<?xml-stylesheet href="javascript:alert(1)"?><a/>',
    "sheet.xsl": b"<xsl:stylesheet/>",
    "paper.pdf": b"%PDF-1.7\n/JS (app.alert(1))",
    "mail.mht": b"MIME-Version: 1.0\nContent-Type: text/html\n\n" + SCRIPT,
    "picture.png": SCRIPT,
    "data.json": b"[1]",
    "module.wasm": b"\0asm\1\0\0\0",
    "none": SCRIPT,
}
HIDDEN = "\u202e\u2066\u200f\u200b\ufeff\u2028"
"""Characters that are removed from the names of downloads."""


class Doors:
    """The client of olga, who may see everything, and an address of a file at each door."""

    def __init__(self, directory: Path) -> None:
        site_writer.make_user("olga")
        users = get_user_model().objects
        users.filter(username="olga").update(is_staff=True, is_superuser=True)
        self.client = Client()
        self.client.force_login(users.get(username="olga"))
        self.run = site_writer.make_run("olga")
        self.thread = site_writer.run(self.run)["thread"]
        self.outputs = DataSettings.now().workspaces / self.thread / "outputs"
        self.outputs.mkdir(parents=True)
        self.directory = directory
        self.skill = 0

    def put(self, name: str, data: bytes) -> None:
        (self.outputs / name).write_bytes(data)

    def put_in_skill(self, files: dict[str, bytes]) -> None:
        inside = {f"assets/{name}": data for name, data in files.items()}
        self.skill = store_skill(package(self.directory, "beans", files=inside)).skill_id

    def of_workspace(self, name: str) -> list[str]:
        return [
            reverse("web:run-file", args=[self.run, name]),
            reverse("api:file-content", args=[self.thread]) + f"?path=/outputs/{quote(name)}",
            reverse("api:file-content", args=[self.thread])
            + f"?path=/sandbox/outputs/{quote(name)}",
        ]

    def of_skill(self, name: str) -> list[str]:
        path = f"assets/{name}"
        return [
            reverse("web:skill-file", args=[self.skill, path]),
            reverse("api:skill-file", args=[self.skill, path]),
        ]

    def exports(self) -> list[str]:
        return [
            reverse("web:skill-export", args=[self.skill]),
            reverse("api:skill-export", args=[self.skill]),
        ]

    def get(self, path: str) -> HttpResponseBase:
        response = self.client.get(path)
        let_go(response)
        return response


@pytest.fixture
def doors(tmp_path: Path) -> Doors:
    return Doors(tmp_path)


def check(response: HttpResponseBase, name: str) -> None:
    assert response.headers["Content-Type"] in HARMLESS, name
    assert "sandbox" in response.headers["Content-Security-Policy"], name
    assert wrong_headers(response) == [], name
    is_text = response.headers["Content-Type"].startswith("text/plain")
    assert is_text or response.headers["Content-Disposition"].startswith("attachment;"), name


def test_no_file_is_opened_as_a_page(doors: Doors) -> None:
    doors.put_in_skill(FILES)
    for name, data in FILES.items():
        doors.put(name, data)
        sent = [doors.get(path) for path in [*doors.of_workspace(name), *doors.of_skill(name)]]
        assert sum(response.status_code == 200 for response in sent) >= 4, name
        for response in sent:
            if response.status_code == 200:
                check(response, name)
    for path in doors.exports():
        check(doors.get(path), path)


def test_no_name_of_a_download_has_hidden_characters(doors: Doors) -> None:
    name = f"report{HIDDEN}fdp.exe"
    doors.put(name, b"\0")
    sent = [doors.get(path) for path in doors.of_workspace(name)]
    found = [response for response in sent if response.status_code == 200]
    assert len(found) >= 2
    for response in found:
        disposition = unquote(response.headers["Content-Disposition"])
        assert not re.search(f"[{HIDDEN}]", disposition)
        assert "report______fdp.exe" in disposition


def test_a_file_that_is_not_a_picture_is_not_shown(doors: Doors) -> None:
    doors.put("picture.png", SCRIPT)
    response = doors.get(reverse("web:run-picture", args=[doors.run, "picture.png"]))
    assert response.status_code in (404, 415)
    assert b"<script>" not in response.content  # type: ignore[attr-defined]


def test_exports_of_the_admin_are_downloads(doors: Doors) -> None:
    agent = Agent.objects.get()
    answer = doors.client.post(
        reverse("admin:agents_agent_changelist"),
        {"action": "export_selected", "_selected_action": [agent.pk]},
    )
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    assert "sandbox" in answer["Content-Security-Policy"]
    assert wrong_headers(answer) == []


def test_downloads_count_among_the_lasting_connections(doors: Doors, settings: Any) -> None:
    settings.VEL = {**settings.VEL, "CONNECTIONS_PER_USER": 1}
    doors.put("data.json", b"[1]")
    olga = get_user_model().objects.get(username="olga").pk
    web, *_, api = doors.of_workspace("data.json")
    place = take_place(olga)
    assert [doors.get(path).status_code for path in (web, api)] == [429, 429]
    place.release()
    assert [doors.get(path).status_code for path in (web, api)] == [200, 200]
    assert open_now(olga) == 0

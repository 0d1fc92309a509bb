"""Importing a skill in the admin stores it only after the preview is confirmed."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from django.urls import reverse

from skills_app.admin import importing as skill_import
from skills_app.models import Skill, SkillVersion, Trust
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, messages_of, text_of
from tests.skills_app.admin.skill_rows import HOSTILE, librarian, staff_with
from tests.support.skills import skill_text

pytestmark = pytest.mark.django_db

URL = "/admin/skills_app/skill/import/"


def archive(files: dict[str, str | bytes], *, text: str | None = None) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("beans/SKILL.md", text or skill_text())
        for path, content in files.items():
            made.writestr(path if path.startswith("/") else f"beans/{path}", content)
    return packed.getvalue()


def look(client: Client, data: bytes, name: str = "beans.zip", **more: Any) -> Any:
    file = SimpleUploadedFile(name, data)
    return client.post(URL, {"file": file, "target": "", **more})


def confirm(client: Client, looked: Any, **more: Any) -> Any:
    """Press the button of the preview page."""
    fields = ("content_hash", "target", "carried", "filename")
    found = {
        name: match[1]
        for name in fields
        if (match := re.search(rf'name="{name}" value="([^"]*)"', text_of(looked)))
    }
    return client.post(URL, {**found, "reason": "", **more}, follow=True)


@pytest.fixture
def client() -> Client:
    return client_of(librarian())


def test_an_archive_is_looked_at_and_then_stored(client: Client) -> None:
    looked = look(client, archive({"run.sh": "#!/bin/sh\necho hi\n"}))
    assert looked.status_code == 200
    text = text_of(looked)
    assert "Counts beans." in text
    assert "run.sh" in text
    assert not SkillVersion.objects.exists(), "nothing is stored by looking"
    done = confirm(client, looked, reason="We count.")
    assert messages_of(done) == ["Skill beans v1: imported; agents can have it."]
    version = SkillVersion.objects.get(skill__name="beans")
    assert (version.trust, version.source, version.origin) == ("imported", "admin", "beans.zip")
    assert version.reason == "We count."
    assert LogEntry.objects.get().is_addition()
    again = confirm(client, look(client, archive({"run.sh": "#!/bin/sh\necho hi\n"})))
    assert "already existed" in messages_of(again)[0]


@pytest.mark.slow
def test_a_later_version_waits_unless_a_reviewer_accepts_it(client: Client) -> None:
    confirm(client, look(client, archive({})))
    looked = look(client, archive({"b": "2"}))
    assert "version 2 of" in text_of(looked)
    assert messages_of(confirm(client, looked)) == ["Skill beans v2: waits for review."]
    confirm(client, look(client, archive({"c": "3"})), accept="on")
    assert Skill.objects.get(name="beans").current.number == 3
    manager = client_of(staff_with("sam", "manage_library"))
    looked = look(manager, archive({"d": "4"}))
    assert 'name="accept"' not in text_of(looked)
    confirm(manager, looked, accept="on")
    assert Skill.objects.get(name="beans").current.number == 3


def test_all_problems_are_reported_together(client: Client) -> None:
    data = archive({"../../evil": "x", "a\u202eb": "y"}, text="---\nname: x\n---\n")
    refused = look(client, data, f"{HOSTILE}.zip")
    text = text_of(refused)
    assert refused.status_code == 400
    assert text.count('class="vel-tag vel-severity-danger"') >= 2
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert not Skill.objects.filter(scope="library").exists()


@pytest.mark.parametrize(
    ("data", "name"),
    [(b"", "beans.zip"), (b"hello", "beans.zip"), (b"\xff\xfe", "SKILL.md"), (b"PK\3\4" * 9, "x")],
)
def test_an_invalid_package_is_refused(client: Client, data: bytes, name: str) -> None:
    assert look(client, data, name).status_code == 400


def test_only_the_shown_package_can_be_confirmed(client: Client) -> None:
    looked = look(client, archive({"a": "1"}))
    other = base64.b64encode(archive({"a": "2"})).decode()
    answer = confirm(client, looked, carried=other)
    assert (answer.status_code, "not what was shown" in text_of(answer)) == (409, True)
    answer = confirm(client, looked, carried="no base64!")
    assert answer.status_code == 400
    assert not SkillVersion.objects.exists()


def test_a_large_upload_is_chosen_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_import, "CARRIED_BYTES", 10)
    data = archive({"a": "1"})
    looked = look(client, data)
    assert 'name="carried"' not in text_of(looked)
    assert confirm(client, looked).status_code == 400
    other = SimpleUploadedFile("beans.zip", archive({"a": "2"}))
    assert confirm(client, looked, file=other).status_code == 409
    done = confirm(client, looked, file=SimpleUploadedFile("beans.zip", data))
    assert "imported" in messages_of(done)[0]


def test_an_embedded_upload_is_never_too_large_for_a_form(client: Client) -> None:
    noise = bytes(range(256)) * 5_500
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("beans/SKILL.md", skill_text())
        made.writestr("beans/noise.bin", noise)
    assert 1_400_000 < len(packed.getvalue()) <= skill_import.CARRIED_BYTES
    done = confirm(client, look(client, packed.getvalue()))
    assert "v1:" in messages_of(done)[0]


def test_a_file_above_the_limit_is_refused_without_reading_it_all(client: Client) -> None:
    with override_settings(VEL_SKILLS={"ARCHIVE_BYTES": 100}):
        refused = look(client, archive({"a": "1"}))
    assert refused.status_code == 400
    assert "limit" in text_of(refused)


def test_a_dangerous_package_is_marked_before_and_quarantined_after(client: Client) -> None:
    text = skill_text(body="\U000e0041\U000e0042 Count them.")
    looked = look(client, archive({}, text=text))
    assert "This version will be in quarantine" in text_of(looked)
    done = confirm(client, looked, accept="on")
    assert "in quarantine" in messages_of(done)[0]
    assert SkillVersion.objects.get(skill__name="beans").trust == Trust.QUARANTINED


def test_an_owner_imports_only_for_an_own_agent() -> None:
    owner = rows.staff("ada")
    mine = rows.agent("mine", owner=owner)
    other = rows.agent("other", owner=rows.superuser())
    client = client_of(owner)
    page = text_of(client.get(f"{URL}?agent={mine.pk}"))
    assert f'value="{mine.pk}" selected' in page
    assert "the library" not in page
    for target in ("", other.pk):
        assert look(client, archive({}), target=target).status_code == 400
    done = confirm(client, look(client, archive({}), target=mine.pk))
    assert done.status_code == 200
    assert Skill.objects.get(name="beans").agent == mine
    address = reverse("admin:skills_app_skill_changelist")
    assert client.get(address).status_code == 403, "the list is for those who may look"

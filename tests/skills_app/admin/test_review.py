"""Reviewing a skill in the admin accepts exactly the version that was shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from skills_app.actions.library import review_version
from skills_app.models import Skill, SkillVersion, Trust
from tests.agents.admin import rows
from tests.agents.admin.pages import client_of, messages_of, text_of
from tests.skills_app.admin.skill_rows import imported, librarian, review, staff_with, url

pytestmark = pytest.mark.django_db

RUN = "#!/bin/sh\necho {}\n"


@pytest.fixture
def root() -> User:
    return rows.superuser()


@pytest.fixture
def lib() -> User:
    return librarian()


def two_versions(directory: Path, root: User, *, reviewed: bool) -> tuple[SkillVersion, ...]:
    first = imported(directory / "a", root, files={"run.sh": RUN.format("one")}).version
    if reviewed:
        review_version(first.pk, by=root, content_hash=first.content_hash)
    second = imported(directory / "b", root, files={"run.sh": RUN.format("two")}).version
    first, second = SkillVersion.objects.order_by("number")
    return first, second


def plain(text: str) -> str:
    return text.replace('<mark class="mark mark-changed">', "").replace("</mark>", "")


@pytest.mark.slow
def test_a_version_that_waits_is_accepted(root: User, lib: User, tmp_path: Path) -> None:
    _, second = two_versions(tmp_path, root, reviewed=True)
    client = client_of(lib)
    text = plain(text_of(client.get(url("review", second))))
    assert "<del>echo one</del>" in text
    assert "<ins>echo two</ins>" in text
    assert "All files" not in text, "the version before is reviewed"
    response = client.post(url("review", second), review(second), follow=True)
    assert messages_of(response) == ["Skill beans v2: accepted, as reviewed."]
    skill = Skill.objects.get(name="beans")
    assert (skill.current.number, skill.current.trust) == (2, Trust.REVIEWED)
    assert skill.current.reviewed_by == lib
    assert "version 2" in LogEntry.objects.get(user=lib).change_message


def test_an_unreviewed_version_is_shown_completely(root: User, lib: User, tmp_path: Path) -> None:
    first, second = two_versions(tmp_path, root, reviewed=False)
    client = client_of(lib)
    text = plain(text_of(client.get(url("review", second))))
    assert "<del>echo one</del>" in text
    assert "All files" in text
    assert "<ins>#!/bin/sh</ins>" in text, "check the unchanged files too"
    assert "<ins>#!/bin/sh</ins>" in text_of(client.get(url("review", first)))


def test_a_review_of_something_else_is_refused(root: User, lib: User, tmp_path: Path) -> None:
    first, second = two_versions(tmp_path, root, reviewed=False)
    client = client_of(lib)
    other = {**review(second), "content_hash": first.content_hash}
    for form in (other, {**other, "answer": "quarantine", "reason": "x"}):
        response = client.post(url("review", second), form)
        assert (response.status_code, "review it again" in text_of(response).lower()) == (
            409,
            True,
        )
    second.refresh_from_db()
    assert second.trust == Trust.IMPORTED
    assert Skill.objects.get(name="beans").current_id == first.pk


def test_another_current_version_makes_the_page_stale(
    root: User, lib: User, tmp_path: Path
) -> None:
    _, second = two_versions(tmp_path, root, reviewed=False)
    form = review(second)
    imported(tmp_path / "c", root, body="Third.", accept=True)
    response = client_of(lib).post(url("review", second), form)
    assert response.status_code == 409
    second.refresh_from_db()
    assert second.trust == Trust.IMPORTED


def test_a_deleted_skill_is_not_accepted(root: User, lib: User, tmp_path: Path) -> None:
    _, second = two_versions(tmp_path, root, reviewed=False)
    Skill.objects.filter(name="beans").update(is_deleted=True)
    assert client_of(lib).post(url("review", second), review(second)).status_code == 404


def test_quarantine_needs_a_reason_and_restores_the_earlier_version(
    root: User, lib: User, tmp_path: Path
) -> None:
    first, second = two_versions(tmp_path, root, reviewed=True)
    review_version(second.pk, by=root, content_hash=second.content_hash)
    second.refresh_from_db()
    client = client_of(lib)
    form = review(second, "quarantine")
    refused = client.post(url("review", second), form)
    assert (refused.status_code, "Give a reason" in text_of(refused)) == (400, True)
    response = client.post(url("review", second), {**form, "reason": "It lies."}, follow=True)
    assert messages_of(response) == ["Skill beans v2: in quarantine."]
    second.refresh_from_db()
    assert (second.trust, "It lies." in second.reason) == (Trust.QUARANTINED, True)
    assert Skill.objects.get(name="beans").current_id == first.pk
    again = text_of(client.get(url("review", second)))
    assert "from quarantine" in again
    client.post(url("review", second), review(second))
    second.refresh_from_db()
    assert second.trust == Trust.REVIEWED


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"answer": "accept"},
        {"answer": "accept", "content_hash": "x" * 64},
        {"answer": "own", "content_hash": "0" * 64},
    ],
)
def test_an_answer_without_the_shown_hash_is_refused(
    root: User, lib: User, tmp_path: Path, form: dict[str, str]
) -> None:
    made = imported(tmp_path, root).version
    assert client_of(lib).post(url("review", made), form).status_code == 400
    made.refresh_from_db()
    assert made.trust == Trust.IMPORTED


def test_importing_is_not_reviewing(root: User, tmp_path: Path) -> None:
    made = imported(tmp_path, root).version
    client = client_of(staff_with("sam", "manage_library"))
    assert client.get(url("review", made)).status_code == 403
    assert client.post(url("review", made), review(made)).status_code == 403
    made.refresh_from_db()
    assert made.trust == Trust.IMPORTED


@pytest.mark.slow
def test_the_page_reports_files_that_do_not_fit(root: User, lib: User, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"part-{n}.txt": f"{n}\n" * 40_000 for n in range(4)}
    files |= {"data.bin": b"\0" * 100, "many.txt": "\n" * 9_000}
    made = imported(tmp_path, root, files=files).version
    text = text_of(client_of(lib).get(url("review", made)))
    assert "cannot be shown here" in text
    assert "it is not text (UTF-8)" in text
    assert len(text) < 8_000_000

"""The pages of an agent's skills and of the library: permissions, and safe display."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from agents.models import Agent
from skills_app.actions.own_skills import create_own_skill
from skills_app.models import Skill, SkillVersion, Trust
from tests.agents.web.conftest import SignIn
from tests.support.runs import make_agent
from tests.support.skill_zips import HOSTILE, bomb, zipped
from tests.support.skills import package, store_skill

pytestmark = pytest.mark.django_db

PANEL = "/agents/helper/skills/"
LIBRARY = "/skills/"
TEXTS = {
    "name": "Bean Counting",
    "description": "Counts beans.",
    "instructions": "Count.\r\nTwice.",
}


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    return sign_in("olga")


@pytest.fixture
def agent(olga: Client) -> Agent:
    """Olga's agent, which all users may use."""
    return make_agent(person("olga"), slug="helper", name="Helper<i>\u202e", everyone=True)


@pytest.fixture
def shared(tmp_path: Path) -> Skill:
    return store_skill(package(tmp_path, "shared", tags="[counting]")).skill


def person(name: str) -> User:
    return User.objects.get(username=name)


def allow(name: str, *permissions: str) -> None:
    person(name).user_permissions.add(*Permission.objects.filter(codename__in=permissions))


def text(client: Client, url: str = PANEL, status: int = 200) -> str:
    response = client.get(url)
    assert response.status_code == status
    if status == 200:
        assert "script-src" not in response["Content-Security-Policy"]
        assert "default-src 'self'" in response["Content-Security-Policy"]
        assert response["Cache-Control"].startswith("max-age=0")
    return response.content.decode()


def post(client: Client, action: str, url: str = PANEL, **fields: Any) -> Any:
    return client.post(url, {"action": action, **fields}, follow=True)


def own(agent: Agent, **changes: str) -> Skill:
    return create_own_skill(agent, **{**TEXTS, **changes}, by=person("olga"))


@pytest.mark.slow
def test_skills_are_grouped_by_where_they_come_from(
    olga: Client, agent: Agent, shared: Skill
) -> None:
    own(agent)
    page = text(olga)
    for title in ("Own", "Library", "Built-in"):
        assert f">{title}</h2>" in page
    assert page.index("bean-counting") < page.index(">Library<") < page.index(">shared</a>")
    assert "1 is on." in page
    assert 'href="/agents/helper/knowledge/"' in page
    assert 'href="/agents/helper/skills/"' in text(olga, "/agents/helper/knowledge/")
    assert 'href="/agents/helper/skills/"' in text(olga, "/")
    assert "Helper&lt;i&gt;⟨U+202E⟩" in page


def test_a_skill_is_added_changed_and_deleted(olga: Client, agent: Agent) -> None:
    assert "<textarea" in text(olga, f"{PANEL}?edit=new")
    assert "bean-counting was added." in post(olga, "add", **TEXTS).content.decode()
    skill = Skill.objects.get(agent=agent)
    assert skill.current.content.endswith("Count.\nTwice.\n")
    assert skill.current.source == "web"

    form = text(olga, f"{PANEL}?edit={skill.pk}")
    assert "Count.\nTwice.</textarea>" in form
    saved = post(olga, "save", skill=skill.pk, base=1, **{**TEXTS, "description": "Counts."})
    assert "saved as version 2" in saved.content.decode()
    assert Skill.objects.get(agent=agent).description == "Counts."

    assert "Deleted." in post(olga, "delete", skill=skill.pk).content.decode()
    assert "bean-counting" not in text(olga)


def test_hidden_characters_of_a_skill_survive_its_form(olga: Client, agent: Agent) -> None:
    skill = own(agent, instructions="a\u200bb", description="x\u00ady")
    form = text(olga, f"{PANEL}?edit={skill.pk}")
    assert r"a\u{200b}b" in form
    assert "invisible characters" in form
    typed = {"name": "bean-counting", "description": r"x\u{ad}y", "instructions": r"a\u{200b}c"}
    post(olga, "save", skill=skill.pk, base=1, **typed)
    assert Skill.objects.get(agent=agent).current.content.endswith("a\u200bc\n")
    assert Skill.objects.get(agent=agent).description == "x\u00ady"


def test_a_refused_form_keeps_the_typed_text(olga: Client, agent: Agent) -> None:
    own(agent)
    response = post(olga, "add", **{**TEXTS, "instructions": HOSTILE})
    page = response.content.decode()
    assert response.status_code == 409
    assert "already" in page
    assert "&lt;script&gt;window.pwned" in page
    assert "<script>window.pwned" not in page
    assert post(olga, "add", name="x", description="", instructions="").status_code == 400


def test_a_stale_save_keeps_the_typed_text(olga: Client, agent: Agent) -> None:
    skill = own(agent)
    typed = {**TEXTS, "instructions": "Count thrice."}
    post(olga, "save", skill=skill.pk, base="1", **{**TEXTS, "instructions": "Meanwhile."})
    refused = post(olga, "save", skill=skill.pk, base="1", **typed)
    assert refused.status_code == 409
    assert "has changed" in refused.content.decode()
    assert "Count thrice.</textarea>" in refused.content.decode()
    assert "Meanwhile." in Skill.objects.get(agent=agent).current.content
    assert post(olga, "save", skill=skill.pk, base="", **typed).status_code == 400


def test_skills_are_turned_on_and_off(olga: Client, agent: Agent, shared: Skill) -> None:
    assert 'aria-checked="false"' in text(olga)
    assert "Turned on" in post(olga, "on", skill=shared.pk).content.decode()
    assert 'aria-checked="true"' in text(olga)
    assert "Turned off" in post(olga, "off", skill=shared.pk).content.decode()
    assert not Skill.objects.get(pk=shared.pk).is_deleted


@pytest.mark.slow_cases
@pytest.mark.parametrize("skill", ["", "x", "-1", "9" * 18, "9" * 40, "٣"])
def test_forms_that_name_no_skill(olga: Client, agent: Agent, skill: str) -> None:
    for action in ("on", "off", "delete", "save"):
        response = post(olga, action, skill=skill, base="1", **TEXTS)
        assert 'class="note problem" role="alert"' in response.content.decode()
    assert text(olga, f"{PANEL}?edit={skill or 'none'}", status=404)


@pytest.mark.slow
def test_a_user_of_the_agent_only_reads(agent: Agent, sign_in: SignIn, shared: Skill) -> None:
    skill = own(agent)
    bob = sign_in("bob")
    page = text(bob)
    assert "bean-counting" in page
    assert 'role="switch"' not in page
    assert "Delete" not in page
    assert "<textarea" not in text(bob, f"{PANEL}?edit=new")
    upload = SimpleUploadedFile("beans.zip", zipped())
    for response in (
        post(bob, "add", **TEXTS),
        post(bob, "save", skill=skill.pk, base="1", **TEXTS),
        post(bob, "on", skill=shared.pk),
        post(bob, "delete", skill=skill.pk),
        post(bob, "upload", file=upload),
    ):
        assert "Only the owner of" in response.content.decode()
    assert SkillVersion.objects.filter(skill=skill).count() == 1
    assert Skill.objects.filter(agent=agent).count() == 1


def test_others_agents_and_strangers(sign_in: SignIn, client: Client, agent: Agent) -> None:
    skill = own(agent)
    Agent.objects.update(everyone=False)
    bob = sign_in("bob")
    for url in (PANEL, f"/skills/{skill.pk}/", f"/skills/{skill.pk}/export/"):
        assert bob.get(url).status_code == 404
        assert client.get(url).status_code == 302
    assert bob.get(f"/skills/{skill.pk}/files/SKILL.md").status_code == 404
    assert bob.post(PANEL, {"action": "add", **TEXTS}).status_code == 404
    assert bob.get(LIBRARY).status_code == 200
    assert client.get(LIBRARY).status_code == 302


def test_an_uploaded_package_becomes_an_own_skill(olga: Client, agent: Agent) -> None:
    file = SimpleUploadedFile("beans<b>.zip", zipped({"scripts/x.py": "print(1)"}))
    assert "beans was imported" in post(olga, "upload", file=file).content.decode()
    version = SkillVersion.objects.get(skill__agent=agent)
    assert (version.trust, version.file_count) == (Trust.IMPORTED, 2)


@pytest.mark.slow_cases
@pytest.mark.parametrize("url", [PANEL, LIBRARY])
def test_bad_uploads_are_refused_with_all_problems(olga: Client, agent: Agent, url: str) -> None:
    allow("olga", "manage_library")
    bad = b"---\nname: ''\nlicense: [x]\n---\n"
    response = post(olga, "upload", url, file=SimpleUploadedFile("SKILL.md", bad))
    assert response.status_code == 400
    assert response.content.decode().count("<li>") >= 2
    for data in (bomb(50_000_000), zipped({"../x": "y"}), b"<script>"):
        refused = post(olga, "upload", url, file=SimpleUploadedFile("x.zip", data))
        assert refused.status_code == 400
    assert post(olga, "upload", url).status_code == 400
    with override_settings(VEL_SKILLS={"ARCHIVE_BYTES": 1_000}):
        huge = SimpleUploadedFile("x.zip", b"x" * 5_100_000)
        assert olga.post(url, {"action": "upload", "file": huge}).status_code == 413
    assert not Skill.objects.filter(name="beans").exists()


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["\0", r"\u{0}", r"\u{d800}", "\r", "\u2028"])
def test_odd_characters_are_refused_or_stored_and_never_a_failure(
    olga: Client, agent: Agent, odd: str
) -> None:
    allow("olga", "manage_library", "review_skill")
    skill = own(agent)
    for field in TEXTS:
        typed = {**TEXTS, field: f"a{odd}b"}
        assert post(olga, "add", **typed).status_code in (200, 400, 409)
        assert post(olga, "save", skill=skill.pk, base="1", **typed).status_code in (200, 400, 409)
    for query in (f"?edit={odd}", f"?q={odd}&tag={odd}&page={odd}"):
        assert olga.get(f"{PANEL}{query}").status_code in (200, 404)
        assert olga.get(f"{LIBRARY}{query}").status_code == 200
    file = SimpleUploadedFile(f"be{odd}ns.zip", zipped())
    form = {"file": file, "reason": f"be{odd}cause"}
    assert olga.post(LIBRARY, form, follow=True).status_code == 200
    shared = Skill.objects.get(name="beans")
    judged = {"version": "1", "action": "quarantine", "reason": f"be{odd}cause"}
    assert olga.post(f"/skills/{shared.pk}/", judged, follow=True).status_code == 200
    assert olga.get(f"/skills/{shared.pk}/files/a{odd}b").status_code == 404


def test_forms_need_a_csrf_token(agent: Agent) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("olga"))
    for url in (PANEL, LIBRARY):
        assert client.post(url, {"action": "add", **TEXTS}).status_code == 403
    assert not Skill.objects.filter(agent=agent).exists()


@pytest.mark.slow
def test_a_quarantined_unaccepted_skill_is_marked(
    olga: Client, agent: Agent, tmp_path: Path
) -> None:
    bad = store_skill(package(tmp_path, "bad"), trust=Trust.QUARANTINED, accept=False).skill
    assert bad.current is None
    for url in (PANEL, f"{LIBRARY}?trust=quarantined", f"{LIBRARY}?q=bad"):
        shown = text(olga, url)
        assert ">bad</a>" in shown
        assert 'data-trust="quarantined"' in shown
    refused = post(olga, "on", skill=bad.pk).content.decode()
    assert "is in quarantine" in refused


# The library -------------------------------------------------------------------------------------


def test_the_library_is_searched(olga: Client, shared: Skill, tmp_path: Path) -> None:
    store_skill(package(tmp_path, "invoices", description="Bills customers with invoices."))
    listed = text(olga, f"{LIBRARY}?scope=library")
    assert ">shared</a>" in listed
    assert ">invoices</a>" in listed
    found = text(olga, f"{LIBRARY}?scope=library&q=invoices")
    assert ">invoices</a>" in found
    assert ">shared</a>" not in text(olga, f"{LIBRARY}?trust=quarantined")
    tagged = text(olga, f"{LIBRARY}?tag=Counting")
    assert ">shared</a>" in tagged
    assert ">invoices</a>" not in tagged
    hostile = text(olga, f"{LIBRARY}?q={HOSTILE}&tag={HOSTILE}&trust=x&scope=y&page=z")
    assert "<script>window" not in hostile
    assert "Import a package" not in listed


def test_only_permitted_people_import_a_package(olga: Client, sign_in: SignIn) -> None:
    def upload(client: Client) -> Any:
        return client.post(LIBRARY, {"file": SimpleUploadedFile("b.zip", zipped())}, follow=True)

    assert upload(olga).status_code == 403
    assert not Skill.objects.filter(name="beans").exists()
    allow("olga", "manage_library")
    response = upload(sign_in("olga"))
    assert "beans was imported as version 1" in response.content.decode()
    assert response.redirect_chain[-1][0] == f"/skills/{Skill.objects.get(name='beans').pk}/"

"""The skills of an agent over HTTP: the documented behaviour, and attacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings
from rest_framework.test import APIClient

from agents.models import Agent
from skills_app.actions.own_skills import create_own_skill
from skills_app.library.scopes import LIBRARY
from skills_app.models import Skill, SkillVersion, Trust
from tests.agents.api.rows import HttpResponse, client_for, make_agent, make_user, post, problem_of
from tests.support.skill_zips import HOSTILE, bomb, zipped
from tests.support.skills import package, store_skill

pytestmark = pytest.mark.django_db

BODY = {"name": "beans", "description": "Counts beans.", "instructions": "# Beans\nCount them."}


@pytest.fixture
def ann() -> User:
    return make_user("ann")


@pytest.fixture
def agent(ann: User) -> Agent:
    return make_agent(owner=ann, builtin_skills=False)


@pytest.fixture
def client(ann: User) -> APIClient:
    return client_for(ann)


@pytest.fixture
def shared(tmp_path: Path) -> Skill:
    """A reviewed skill of the library."""
    return store_skill(package(tmp_path, "shared")).skill


def url(agent: Agent, skill: str | int = "", query: str = "") -> str:
    return f"/api/v1/agents/{agent.pk}/skills" + (f"/{skill}" if skill else "") + query


def listed(client: APIClient, agent: Agent, query: str = "") -> list[dict[str, Any]]:
    response = client.get(url(agent, query=query))
    assert response.status_code == 200
    return response.json()["skills"]


def put(client: APIClient, agent: Agent, skill: str | int, **body: Any) -> HttpResponse:
    return client.put(url(agent, skill), body, format="json")


def upload(client: APIClient, place: str, data: bytes, name: str = "beans.zip", **more: Any) -> Any:
    return client.post(place, {"file": SimpleUploadedFile(name, data), **more}, format="multipart")


def own(agent: Agent, **changes: str) -> Skill:
    assert agent.owner is not None
    return create_own_skill(agent, **{**BODY, **changes}, by=agent.owner)


# As in the documentation of the endpoints --------------------------------------------------------


@pytest.mark.slow
def test_a_skill_is_created_listed_changed_and_deleted(agent: Agent, client: APIClient) -> None:
    created = post(client, url(agent), BODY)
    assert created.status_code == 201
    skill = created.json()["skill"]
    assert {name: skill[name] for name in BODY} == BODY
    assert isinstance(skill["id"], str)
    assert skill["created_at"].endswith("Z")

    (found,) = listed(client, agent)
    assert found == skill
    assert found["scope"] == "own"
    assert (found["enabled"], found["trust"], found["version"]) == (True, "imported", 1)

    changed = put(client, agent, skill["id"], instructions="Count twice.")
    assert changed.status_code == 200
    assert changed.json()["skill"]["instructions"] == "Count twice."
    assert changed.json()["skill"]["description"] == BODY["description"]
    assert changed.json()["skill"]["version"] == 2
    assert changed.json()["skill"]["updated_at"] > skill["updated_at"]

    assert client.delete(url(agent, skill["id"])).status_code == 204
    assert listed(client, agent) == []
    assert client.delete(url(agent, skill["id"])).status_code == 404
    assert put(client, agent, skill["id"], name="x").status_code == 404


@pytest.mark.slow
@pytest.mark.both_databases
def test_names_are_normalised_and_a_duplicate_is_a_conflict(
    agent: Agent, client: APIClient
) -> None:
    assert (
        post(client, url(agent), {**BODY, "name": "Count Beans"}).json()["skill"]["name"]
        == "count-beans"
    )
    again = post(client, url(agent), {**BODY, "name": "count-beans"})
    assert again.status_code == 409
    assert problem_of(again)["code"] == "duplicate"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "beans"},
        {**BODY, "name": ""},
        {**BODY, "name": "---"},
        {**BODY, "name": 7},
        {**BODY, "description": "x" * 1025},
        {**BODY, "instructions": "   "},
        {**BODY, "instructions": "x" * 600_000},
        {**BODY, "name": "x" * 70},
        [],
    ],
)
def test_an_invalid_skill_is_refused(agent: Agent, client: APIClient, body: Any) -> None:
    response = post(client, url(agent), body)
    assert response.status_code == 400
    assert problem_of(response)["detail"]
    assert not Skill.objects.filter(agent=agent).exists()


def test_patch_changes_only_the_given_fields(agent: Agent, client: APIClient) -> None:
    skill = own(agent)
    response = client.patch(url(agent, skill.pk), {"description": "Other."}, format="json")
    assert response.status_code == 200
    shown = response.json()["skill"]
    assert (shown["description"], shown["name"]) == ("Other.", "beans")
    assert shown["instructions"] == BODY["instructions"]
    assert put(client, agent, skill.pk).status_code == 400


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_change_on_an_old_version_is_stale(agent: Agent, client: APIClient) -> None:
    skill = own(agent)
    assert put(client, agent, skill.pk, description="One.", base_version=1).status_code == 200
    stale = put(client, agent, skill.pk, description="Two.", base_version=1, enabled=False)
    assert stale.status_code == 409
    assert problem_of(stale)["code"] == "stale"
    (row,) = listed(client, agent)
    assert (row["description"], row["enabled"]) == ("One.", True)
    assert put(client, agent, skill.pk, base_version=2).status_code == 400


def test_one_skill_is_read(agent: Agent, client: APIClient) -> None:
    skill = own(agent)
    response = client.get(url(agent, skill.pk))
    assert response.json()["skill"] == listed(client, agent)[0]
    assert client.get(url(agent, skill.pk + 1)).status_code == 404


# Shared skills -----------------------------------------------------------------------------------


def test_a_shared_skill_is_turned_on_and_off_and_not_changed(
    agent: Agent, client: APIClient, shared: Skill
) -> None:
    (row,) = listed(client, agent)
    assert (row["scope"], row["enabled"], row["trust"]) == ("library", False, "reviewed")
    assert put(client, agent, shared.pk, enabled=True).json()["skill"]["enabled"] is True

    refused = put(client, agent, shared.pk, instructions="Do evil.", enabled=False)
    assert refused.status_code == 409
    assert problem_of(refused)["code"] == "shared_skill"
    assert listed(client, agent)[0]["enabled"] is True

    assert client.delete(url(agent, shared.pk)).status_code == 204
    (row,) = listed(client, agent)
    assert row["enabled"] is False
    assert not Skill.objects.get(pk=shared.pk).is_deleted
    assert put(client, agent, shared.pk, enabled=True).json()["skill"]["enabled"] is True


@pytest.mark.both_databases
def test_the_list_is_narrowed(agent: Agent, client: APIClient, shared: Skill) -> None:
    own(agent)
    assert [row["name"] for row in listed(client, agent, "?scope=own")] == ["beans"]
    assert [row["name"] for row in listed(client, agent, "?enabled=false")] == ["shared"]
    assert [row["name"] for row in listed(client, agent, "?scope=library&enabled=true")] == []
    assert client.get(url(agent, query="?scope=mine")).status_code == 400


def test_a_quarantined_skill_is_not_turned_on(
    agent: Agent, client: APIClient, tmp_path: Path
) -> None:
    skill = store_skill(package(tmp_path, "bad"), trust=Trust.QUARANTINED).skill
    refused = put(client, agent, skill.pk, enabled=True)
    assert refused.status_code == 409
    assert problem_of(refused)["code"] == "quarantined"


# Packages ----------------------------------------------------------------------------------------


def test_a_package_becomes_an_own_skill(agent: Agent, client: APIClient) -> None:
    response = upload(client, url(agent), zipped({"scripts/count.py": "print(3)\n"}))
    assert response.status_code == 201
    skill = response.json()["skill"]
    assert (skill["name"], skill["scope"], skill["trust"]) == ("beans", "own", "imported")
    version = SkillVersion.objects.get(skill=skill["id"])
    assert (version.source, version.origin, version.file_count) == ("api", "beans.zip", 2)


def test_all_problems_of_a_package_are_reported_together(agent: Agent, client: APIClient) -> None:
    data = b"---\nname: ''\nlicense: [x]\nlicence: y\n---\n"
    response = upload(client, url(agent), data, "SKILL.md")
    assert response.status_code == 400
    document = problem_of(response)
    assert len([said for texts in document["errors"].values() for said in texts]) >= 2
    assert not Skill.objects.filter(agent=agent).exists()


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("data", "name"),
    [
        (zipped({"../../etc/evil": "x"}), "beans.zip"),
        (zipped({"/etc/evil": "x"}), "beans.zip"),
        (bomb, "beans.skill"),
        (b"PK\3\4 and no more", "beans.zip"),
        (b"", "SKILL.md"),
        (b"\xff\xfe", "SKILL.md"),
        (zipped({}), "SKILL.md"),
    ],
    ids=["dots", "absolute", "bomb", "broken", "empty", "bytes", "not-text"],
)
def test_hostile_packages_are_refused_completely(
    agent: Agent, client: APIClient, data: bytes | Callable[[], bytes], name: str
) -> None:
    # The bomb is created here, because packing it takes longer than all other parameters of all
    # tests.
    response = upload(client, url(agent), data() if callable(data) else data, name)
    assert response.status_code == 400
    problem_of(response)
    assert not Skill.objects.filter(agent=agent).exists()


def test_an_upload_that_is_too_large_is_refused_before_it_is_read(
    agent: Agent, client: APIClient
) -> None:
    with override_settings(VEL_SKILLS={"ARCHIVE_BYTES": 1_000}):
        # Larger than any form: refused because of its length, even without a token.
        response = upload(APIClient(), url(agent), b"x" * 200_000)
        assert response.status_code == 413
        # Larger than an archive, but not than a form.
        response = upload(client, url(agent), b"x" * 2_000)
        assert response.status_code == 413
        assert problem_of(response)["code"] == "body_too_large"


def test_other_fields_are_refused_with_a_package(agent: Agent, client: APIClient) -> None:
    for more in ({"trust": "reviewed"}, {"scope": LIBRARY}, {"accept": "true"}, {"agent": "x"}):
        assert upload(client, url(agent), zipped(), **more).status_code == 400
    two = [SimpleUploadedFile(f"{i}.zip", zipped()) for i in range(2)]
    client.post(url(agent), {"file": two}, format="multipart")
    assert Skill.objects.filter(agent=agent).count() <= 1


# Attacks -----------------------------------------------------------------------------------------


def every_call(client: APIClient, agent_id: str, skill: object) -> list[HttpResponse]:
    base = f"/api/v1/agents/{agent_id}/skills"
    return [
        client.get(base),
        client.head(base),
        post(client, base, {**BODY, "name": "evil"}),
        upload(client, base, zipped(name="evil")),
        client.get(f"{base}/{skill}"),
        client.put(f"{base}/{skill}", {"instructions": "evil"}, format="json"),
        client.put(f"{base}/{skill}", {"enabled": False}, format="json"),
        client.patch(f"{base}/{skill}", {"instructions": "evil"}, format="json"),
        client.delete(f"{base}/{skill}"),
    ]


def test_another_users_agent_is_not_there(agent: Agent, client: APIClient) -> None:
    bob = make_user("bob")
    other = make_agent("other", everyone=False, owner=bob, builtin_skills=False)
    skill = own(other, description="Secret.")
    for response in every_call(client, other.pk, skill.pk):
        assert response.status_code == 404, response.request
        assert b"Secret" not in response.content
    assert list(SkillVersion.objects.values_list("skill__name", "number")) == [("beans", 1)]


@pytest.mark.slow
def test_another_agents_own_skill_is_not_this_agents(agent: Agent, client: APIClient) -> None:
    other = make_agent("other", owner=agent.owner, builtin_skills=False)
    skill = own(other)
    for response in every_call(client, agent.pk, skill.pk)[4:]:
        assert response.status_code == 404
    assert SkillVersion.objects.get(skill=skill).number == 1


@pytest.mark.slow
@pytest.mark.parametrize("skill", ["0", "-1", "9" * 18, "9" * 30, "x", "1e3", "٣"])
def test_invalid_ids_are_not_found(agent: Agent, client: APIClient, skill: str) -> None:
    for response in every_call(client, agent.pk, skill)[4:]:
        assert response.status_code == 404


@pytest.mark.slow
def test_a_user_of_the_agent_reads_and_changes_nothing(agent: Agent, shared: Skill) -> None:
    skill = own(agent)
    bob = client_for(make_user("bob"))
    answers = every_call(bob, agent.pk, skill.pk)
    assert [answer.status_code for answer in answers] == [
        200, 200, 403, 403, 200, 403, 403, 403, 403,
    ]  # fmt: skip
    assert put(bob, agent, shared.pk, enabled=True).status_code == 403
    assert bob.delete(url(agent, shared.pk)).status_code == 403
    assert SkillVersion.objects.get(skill=skill).number == 1


def test_a_token_without_the_scope_changes_nothing(ann: User, agent: Agent) -> None:
    skill = own(agent)
    answers = every_call(client_for(ann, "read", "run"), agent.pk, skill.pk)
    assert [answer.status_code for answer in answers] == [
        200, 200, 403, 403, 200, 403, 403, 403, 403,
    ]  # fmt: skip
    assert {answer.status_code for answer in every_call(APIClient(), agent.pk, skill.pk)} == {401}
    unread = client_for(ann, "approve").get(url(agent))
    assert problem_of(unread)["code"] == "insufficient_scope"


@pytest.mark.parametrize(
    "field", ["trust", "scope", "agent", "agent_id", "version", "content_hash", "findings", "id"]
)
def test_a_body_cannot_set_internal_fields(agent: Agent, client: APIClient, field: str) -> None:
    skill = own(agent)
    for response in (
        post(client, url(agent), {**BODY, "name": "more", field: "reviewed"}),
        client.put(
            url(agent, skill.pk), {"instructions": "More.", field: "reviewed"}, format="json"
        ),
    ):
        assert response.status_code == 400
        assert field in problem_of(response)["errors"]
    assert SkillVersion.objects.get().trust == Trust.IMPORTED


def test_markup_in_texts_stays_text(agent: Agent, client: APIClient) -> None:
    hostile = HOSTILE.replace("\u202e", "")
    response = post(client, url(agent), {**BODY, "description": hostile, "instructions": hostile})
    assert response.status_code == 201
    assert response["Content-Type"] == "application/json"
    assert response.json()["skill"]["description"] == hostile
    refused = post(client, url(agent), {**BODY, "name": "<script>"})
    assert refused.status_code in (201, 400, 409)
    assert not Skill.objects.filter(name__contains="<").exists()


def test_unknown_methods_are_refused(agent: Agent, client: APIClient) -> None:
    assert client.options(url(agent)).status_code == 405
    assert client.put(url(agent), BODY, format="json").status_code == 405
    assert client.post(url(agent), "{}", content_type="text/plain").status_code == 415
    assert client.get(url(agent, query="/")).status_code == 404
    chunked = client.post(
        url(agent), "{}", content_type="application/json", headers={"Transfer-Encoding": "chunked"}
    )
    assert chunked.status_code == 411

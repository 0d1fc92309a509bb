"""Skills that several people change at the same time: one effect, or a refusal with a reason."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import Run
from agents.services.errors import Conflict
from agents.spec import AgentSpec
from skills_app.actions import sync
from skills_app.actions.library import (
    Imported,
    import_skill,
    quarantine_version,
    review_version,
    set_enabled,
)
from skills_app.actions.own_skills import create_own_skill, update_own_skill
from skills_app.actions.pins import pin_skills
from skills_app.actions.sets import skills_in
from skills_app.actions.versions import VersionDetails, store_package
from skills_app.library.scopes import LIBRARY
from skills_app.models import Skill, SkillVersion, Trust
from tests.agents.api.rows import make_run, make_user
from tests.agents.engine.by_hand import at_once, committed
from tests.skills_app.library.scan.packages import pack
from tests.support.runs import make_agent

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 4


@pytest.fixture(autouse=True)
def _built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "builtin").mkdir()
    monkeypatch.setattr(sync, "BUILT_IN_DIRECTORY", tmp_path / "builtin")


@pytest.fixture
def rhea() -> User:
    return make_user("rhea", "manage_library", "review_skill")


def or_refusal(function: Any, *arguments: Any, **named: Any) -> Any:
    try:
        return function(*arguments, **named)
    except Conflict as refused:
        return refused


@pytest.mark.slow
def test_imports_of_one_name_make_versions_in_a_row(rhea: User) -> None:
    for number in range(ROUNDS):
        name = f"beans-{number}"

        def one(text: str, name: str = name) -> Any:
            return or_refusal(import_skill, pack(name=name, body=text), by=rhea, source="web")

        answers = at_once(*[lambda text=text: one(text) for text in ("A.", "B.", "C.")])
        made = [answer for answer in answers if isinstance(answer, Imported)]
        assert made, answers
        skill = Skill.objects.get(name=name)
        numbers = sorted(skill.versions.values_list("number", flat=True))
        assert numbers == list(range(1, skill.version + 1))
        assert len(made) == skill.version
        # Only the first version is accepted; all others wait.
        assert [answer.version.number for answer in made if not answer.waits] == [1]
        assert skill.current == skill.versions.get(number=1)


def test_the_same_bytes_twice_are_one_version(rhea: User) -> None:
    for number in range(ROUNDS):
        package = pack(name=f"beans-{number}")
        answers = at_once(*[partial(import_skill, package, by=rhea, source="web")] * 3)
        assert sorted(answer.created for answer in answers) == [False, False, True]
        assert SkillVersion.objects.filter(skill__name=package.head.name).count() == 1


def test_a_review_against_a_quarantine(rhea: User) -> None:
    otto = make_user("otto", "review_skill")
    for number in range(ROUNDS):
        version = import_skill(pack(name=f"beans-{number}"), by=rhea, source="web").version
        at_once(
            partial(
                or_refusal,
                review_version,
                version.pk,
                by=rhea,
                content_hash=version.content_hash,
                seen_trust=Trust.IMPORTED,
            ),
            partial(quarantine_version, version.pk, by=otto, reason="It phones home."),
        )
        version.refresh_from_db()
        # A review of the imported version does not end a quarantine that came first.
        assert version.trust == Trust.QUARANTINED
        assert Skill.objects.get(pk=version.skill_id).current is None


@pytest.mark.slow
def test_an_import_against_a_quarantine_of_its_bytes(rhea: User) -> None:
    ann = make_user("ann")
    for number in range(ROUNDS):
        package = pack(name=f"beans-{number}")
        agents = [make_agent(ann, slug=f"a{number}-{place}") for place in range(2)]
        first = import_skill(package, by=ann, source="web", agent=agents[0]).version
        at_once(
            partial(quarantine_version, first.pk, by=rhea, reason="no"),
            partial(import_skill, package, by=ann, source="web", agent=agents[1]),
        )
        trusts = SkillVersion.objects.filter(skill__name=package.head.name)
        assert set(trusts.values_list("trust", flat=True)) == {Trust.QUARANTINED}


@pytest.mark.slow
def test_a_concurrent_import_and_review_both_take_effect(rhea: User) -> None:
    for number in range(ROUNDS):
        name = f"beans-{number}"
        first = import_skill(pack(name=name), by=rhea, source="web").version
        waiting = import_skill(pack(name=name, body="Two."), by=rhea, source="web").version
        at_once(
            partial(review_version, waiting.pk, by=rhea, content_hash=waiting.content_hash),
            partial(import_skill, pack(name=name, body="Three."), by=rhea, source="web"),
        )
        skill = Skill.objects.get(pk=first.skill_id)
        assert (skill.version, skill.current) == (3, waiting)


@pytest.mark.slow
def test_a_concurrent_storage_and_review_both_take_effect(rhea: User) -> None:
    for number in range(3 * ROUNDS):
        name = f"beans-{number}"
        first = import_skill(pack(name=name), by=rhea, source="web").version
        waiting = import_skill(pack(name=name, body="Two."), by=rhea, source="web").version
        three = pack(name=name, body="Three.")
        at_once(
            partial(review_version, waiting.pk, by=rhea, content_hash=waiting.content_hash),
            partial(
                store_package,
                LIBRARY,
                three,
                VersionDetails("import"),
                trust=Trust.IMPORTED,
                accept=False,
            ),
        )
        skill = Skill.objects.get(pk=first.skill_id)
        assert (skill.version, skill.current) == (3, waiting)


def test_two_skills_of_one_name_for_one_agent() -> None:
    ann = make_user("ann")
    agent = make_agent(ann)

    def make(text: str) -> Any:
        return or_refusal(
            create_own_skill, agent, name="beans", description="B.", instructions=text, by=ann
        )

    answers = at_once(*[lambda text=text: make(text) for text in ("A.", "B.", "C.")])
    assert len([answer for answer in answers if isinstance(answer, Skill)]) == 1
    assert SkillVersion.objects.count() == 1
    skill = Skill.objects.get()

    def update(text: str) -> Any:
        return or_refusal(update_own_skill, agent, skill.pk, by=ann, instructions=text)

    answers = at_once(*[lambda text=text: update(text) for text in ("D.", "E.", "F.")])
    made = [answer for answer in answers if isinstance(answer, Skill)]
    assert made
    assert Skill.objects.get().version == 1 + len(made)


@pytest.mark.slow
def test_a_run_that_starts_during_a_change_has_one_complete_version(rhea: User) -> None:
    ann = make_user("ann")
    agent = make_agent(ann, slug="writer")
    first = import_skill(pack(), by=rhea, source="web").version
    set_enabled(agent, first.skill_id, True, by=ann)
    for number in range(ROUNDS):
        run = make_run(ann)
        run = Run.objects.select_related("thread", "agent_version").get(pk=run.pk)
        spec = AgentSpec.model_validate(run.agent_version.spec)
        at_once(
            partial(committed, pin_skills, run, spec, []),
            partial(
                import_skill,
                pack(body=f"Version {number}."),
                by=rhea,
                source="web",
                accept=True,
            ),
        )
        run.refresh_from_db()
        (pinned,) = skills_in(run.pinned.skill_set_id)
        version = SkillVersion.objects.get(pk=pinned.version_id)
        assert version.content_hash == pinned.content_hash
        assert version.files.exists()
        Run.objects.filter(pk=run.pk).update(status="completed")

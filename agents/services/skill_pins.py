"""Which skills a run has: settled when it begins, told to the model where that is a change."""

from __future__ import annotations

from collections.abc import Sequence

from agents.events.append import EventDraft
from agents.models import Message, Run
from agents.spec import AgentSpec
from skills_app.conf import skill_settings
from skills_app.models import ActiveSkill
from skills_app.pinned import PinnedSkill, by_name, pinned
from skills_app.scopes import describe_scope
from skills_app.selectors.available import available_skills
from skills_app.services.sets import skills_in, store_set
from skills_app.services.sync import SourceRead, sync_source


def skill_directories(run: Run) -> list[str]:
    """The host's directories that hold skills of this run's agent."""
    return list(dict.fromkeys([*skill_settings().DIRECTORIES, *run.thread.skill_directories]))


def pin_skills(run: Run, spec: AgentSpec, reads: Sequence[SourceRead]) -> list[EventDraft]:
    """Bind a run that has no skills yet to the versions of this moment; what watchers are told.

    Runs in the transaction of the driver that begins the run. Raises `SkillChanged` when another
    process stored the same directory at this moment: try again.
    """
    for read in reads:
        sync_source(read)
    agent_id = run.agent_version.agent_id
    available = available_skills(
        agent_id, built_in=spec.builtin_skills, directories=run.thread.skill_directories
    )
    now = by_name(pinned(version) for version in available.versions)
    run.skill_set = store_set(available.versions)
    before = _skills_before(run)
    note = _change_note(before, now) if before is not None else ""
    _put_away(run, now)
    suggestion = _suggestion(run, now)
    run.opening_note = "\n".join(part for part in (note, suggestion) if part)
    run.save(update_fields=["skill_set", "opening_note"])
    problems = [
        {"skill": name, "message": f"{describe_scope(scope)} has a skill of a name that is taken."}
        for name, scope in available.collisions
    ]
    problems += [
        {"skill": path, "message": " ".join(str(problem) for problem in found)[:2000]}
        for read in reads
        for path, found in read.problems.items()
    ]
    return [("skills.skipped", {"problems": problems[:50]})] if problems else []


def _skills_before(run: Run) -> dict[str, PinnedSkill] | None:
    """The skills of the thread's last run that had any pinned; None for the first."""
    earlier = Run.objects.filter(thread_id=run.thread_id, parent=None, number__lt=run.number)
    last = (
        earlier.exclude(skill_set=None)
        .order_by("-number")
        .values_list("skill_set_id", flat=True)
        .first()
    )
    return by_name(skills_in(last)) if last is not None else None


def _change_note(before: dict[str, PinnedSkill], now: dict[str, PinnedSkill]) -> str:
    new = [f"{name} ({_one_line(now[name].description)})" for name in now if name not in before]
    gone = [name for name in before if name not in now]
    changed = [
        name
        for name, skill in now.items()
        if name in before and before[name].content_hash != skill.content_hash
    ]
    parts = []
    if new:
        parts.append(f"new: {'; '.join(new)}")
    if changed:
        parts.append(f"changed, to be read again before use: {', '.join(changed)}")
    if gone:
        parts.append(f"gone: {', '.join(gone)}")
    return f"[Vel: the skills have changed. {'. '.join(parts)}.]" if parts else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _put_away(run: Run, now: dict[str, PinnedSkill]) -> None:
    """An active skill that changed or went is active no more."""
    ids = [skill.version_id for skill in now.values()]
    ActiveSkill.objects.filter(thread_id=run.thread_id).exclude(version_id__in=ids).delete()


def _suggestion(run: Run, now: dict[str, PinnedSkill]) -> str:
    """Names of skills that fit the message. Their instructions are never given unasked."""
    message = Message.objects.filter(run=run, turn=0).first()
    if message is None or not now:
        return ""
    return ""

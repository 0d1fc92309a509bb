"""The skills of a run: fixed at its start, with a message to the model if they have changed."""

from __future__ import annotations

from collections.abc import Sequence

from agents.middleware.run_parts import Beginning
from agents.models import Message, Run
from agents.spec import AgentSpec
from skills_app.actions.note import change_note
from skills_app.actions.sets import skills_in, store_set
from skills_app.actions.sync import SourceRead
from skills_app.actions.use import note_loaded
from skills_app.events import SkillsSkipped, SkippedSkill
from skills_app.library.pinned import PinnedSkill, by_name
from skills_app.library.scopes import describe_scope
from skills_app.models import ActiveSkill, RunSkillSet, SkillVersion
from skills_app.options import SkillOptions
from skills_app.queries.available import available_skills
from skills_app.queries.pinned_search import suggested

MAX_TOLD = 50
"""Omitted packages that the event names; its count includes all."""
MAX_MESSAGE = 2000


def pin_skills(run: Run, spec: AgentSpec, reads: Sequence[SourceRead]) -> Beginning:
    """Bind a run without skills to the current versions, and return the resulting events and note.

    Runs in the transaction of the driver that starts the run. `reads` are its directories as this
    driver found them: the run gets no skills outside of them, even if other hosts have stored some.
    """
    available = available_skills(
        run.agent_version.agent_id,
        built_in=spec.option(SkillOptions).builtin_skills,
        directories=run.thread.skill_directories,
        there={read.scope: read.names for read in reads},
    )
    skill_set = store_set(available.versions)
    RunSkillSet.objects.create(run=run, skill_set=skill_set)
    now = by_name(skills_in(skill_set.pk))
    before = _set_before(run)
    note = ""
    if before != skill_set.pk:
        note = change_note(by_name(skills_in(before)), now) if before is not None else ""
        _put_away(run, now)
    note = "\n".join(part for part in (note, _suggestion(run, now)) if part)
    problems: list[SkippedSkill] = [
        {"skill": name, "message": f"{describe_scope(scope)} has a skill of a name that is taken."}
        for name, scope in available.collisions
    ]
    problems += [
        {
            "skill": path or describe_scope(read.scope),
            "message": " ".join(str(problem) for problem in found)[:MAX_MESSAGE],
        }
        for read in reads
        for path, found in read.problems.items()
    ]
    if not problems:
        return Beginning(note=note)
    return Beginning([SkillsSkipped(problems=problems[:MAX_TOLD], count=len(problems))], note)


def pin_for_child(
    set_id: str | None, loaded: Sequence[PinnedSkill], child: Run, call_id: str
) -> None:
    """Bind the run of a subagent to the set of its parent, or to `loaded` skills alone."""
    if loaded:
        ids = [skill.version_id for skill in loaded]
        rows = SkillVersion.objects.select_related("skill").in_bulk(ids)
        set_id = store_set([rows[pk] for pk in ids]).pk
        note_loaded(child.pk, child.thread_id, call_id, loaded)
    if set_id is not None:
        RunSkillSet.objects.create(run=child, skill_set_id=set_id)


def _set_before(run: Run) -> str | None:
    """Return the set of the thread's last run that had one; None for the first."""
    if run.number == 1:
        return None
    earlier = RunSkillSet.objects.filter(
        run__thread_id=run.thread_id, run__parent=None, run__number__lt=run.number
    )
    return earlier.order_by("-run__number").values_list("skill_set_id", flat=True).first()


def _put_away(run: Run, now: dict[str, PinnedSkill]) -> None:
    """Deactivate active skills whose versions have changed or disappeared."""
    ids = {skill.version_id for skill in now.values()}
    active = ActiveSkill.objects.filter(thread_id=run.thread_id)
    old = [pk for pk, version_id in active.values_list("pk", "version_id") if version_id not in ids]
    if old:
        active.filter(pk__in=old).delete()


def _suggestion(run: Run, now: dict[str, PinnedSkill]) -> str:
    """Return names of skills that fit the message. Their instructions need a request."""
    message = Message.objects.filter(run=run, turn=0).first()
    if message is None or not now:
        return ""
    names = suggested(message.text, list(now.values()))
    return f"[Vel: skills that may fit this message: {', '.join(names)}.]" if names else ""

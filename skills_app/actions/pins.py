"""Pin the skills of a run at its start, and tell the model which skills have changed.

The message is in the conversation as Vel's own text, but contains descriptions by the authors of
packages. Descriptions are shortened, quoted, and stripped of the marks that start or end messages
of Vel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agents.middleware.run_parts import Beginning
from agents.models import Message, Run
from agents.spec import AgentSpec
from skills_app.actions.sets import skills_in, store_set
from skills_app.actions.sync import SourceRead
from skills_app.events import SkillsSkipped, SkippedSkill
from skills_app.library.package import SKILL_FILE
from skills_app.library.pinned import PinnedSkill, by_name
from skills_app.library.scopes import describe_scope
from skills_app.models import ActiveSkill, RunSkillSet, SkillFile, SkillUse, SkillVersion, UseKind
from skills_app.options import SkillOptions
from skills_app.queries.available import available_skills
from skills_app.queries.index import suggested

MAX_TOLD = 50
"""The maximum number of omitted packages in the event. Its `count` includes all."""
MAX_MESSAGE = 2000


def pin_skills(run: Run, spec: AgentSpec, reads: Sequence[SourceRead]) -> Beginning:
    """Pin the current versions of the agent's skills for `run`, and return its events and note.

    Call it in the transaction that starts the run. `reads` are the directories as this worker read
    them. The run gets no other skills of directories, even if other hosts have stored some.
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
    _bind_restored(run, now)
    before = _set_before(run)
    note = ""
    if before != skill_set.pk:
        note = change_note(by_name(skills_in(before)), now) if before is not None else ""
        _put_away(run, now)
    note = "\n".join(part for part in (note, _suggestion(run, spec, now)) if part)
    problems: list[SkippedSkill] = [
        {"skill": name, "message": _collision(name, scope, first)}
        for name, scope, first in available.collisions
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


def _collision(name: str, scope: str, first: str) -> str:
    return (
        f"The skill {name} of {describe_scope(scope)} is not used: {describe_scope(first)} has one "
        "of this name, or of one that looks like it. Rename one of them."
    )


def pin_for_child(
    set_id: str | None, loaded: Sequence[PinnedSkill], child: Run, call_id: str
) -> None:
    """Pin the skills for the run of a subagent: only `loaded` or, without them, the set `set_id`.

    `set_id` is the set of the parent run. If that is None, too, the run gets no skills.
    """
    if loaded:
        ids = [skill.version_id for skill in loaded]
        rows = SkillVersion.objects.select_related("skill").in_bulk(ids)
        set_id = store_set([rows[pk] for pk in ids]).pk
        note_loaded(child.pk, child.thread_id, call_id, loaded)
    if set_id is not None:
        RunSkillSet.objects.update_or_create(run=child, defaults={"skill_set_id": set_id})


def _set_before(run: Run) -> str | None:
    """Return the id of the skill set of the thread's last run with one, None if there is none."""
    if run.number == 1:
        return None
    earlier = RunSkillSet.objects.filter(
        run__thread_id=run.thread_id, run__parent=None, run__number__lt=run.number
    )
    return earlier.order_by("-run__number").values_list("skill_set_id", flat=True).first()


def _put_away(run: Run, now: dict[str, PinnedSkill]) -> None:
    """Deactivate the active skills whose versions have changed or are gone."""
    ids = {skill.version_id for skill in now.values()}
    active = ActiveSkill.objects.filter(thread_id=run.thread_id)
    old = [pk for pk, version_id in active.values_list("pk", "version_id") if version_id not in ids]
    if old:
        active.filter(pk__in=old).delete()


def load_by_name(thread_id: str, names: Sequence[str]) -> None:
    """Make exactly the skills `names` active in a thread without an active run, in this order.

    The next run chooses their versions.
    """
    active = ActiveSkill.objects.filter(thread_id=thread_id).order_by("pk")
    rows = {row.name: row for row in active}
    if list(rows) == list(names):
        return
    last = Run.objects.filter(thread=thread_id).order_by("-number").first()
    gone = [row.version_id for name, row in rows.items() if name not in names and row.version_id]
    SkillUse.objects.bulk_create(
        SkillUse(run=last, version_id=version, kind=UseKind.DEACTIVATED) for version in gone
    )
    active.delete()
    versions = {name: row.version_id for name, row in rows.items()}
    ActiveSkill.objects.bulk_create(
        ActiveSkill(thread_id=thread_id, name=name, version_id=versions.get(name)) for name in names
    )


def _bind_restored(run: Run, now: Mapping[str, PinnedSkill]) -> None:
    """Set the versions of active skills from a restored state. Remove those that are gone."""
    for row in ActiveSkill.objects.filter(thread_id=run.thread_id, version=None):
        if row.name in now:
            row.version_id = now[row.name].version_id
            row.save(update_fields=["version"])
            _note(run.pk, "", UseKind.LOADED, [now[row.name]])
        else:
            row.delete()


def _suggestion(run: Run, spec: AgentSpec, now: dict[str, PinnedSkill]) -> str:
    """Return a note to the model with the names of skills that fit the message, or "".

    The model must load a skill to read its instructions.
    """
    if not spec.option(SkillOptions).suggest_skills:
        return ""
    message = Message.objects.filter(run=run, turn=0).first()
    if message is None or not now:
        return ""
    names = suggested(message.text, list(now.values()))
    return f"[Vel: skills that may fit this message: {', '.join(names)}.]" if names else ""


MAX_NAMED = 30
"""The maximum number of skills of one kind (new, changed, gone) that a note names."""
DESCRIPTION_CHARACTERS = 200
_REPLACED = str.maketrans({"[": "(", "]": ")", "“": "'", "”": "'", '"': "'", "<": "‹", ">": "›"})


def change_note(before: Mapping[str, PinnedSkill], now: Mapping[str, PinnedSkill]) -> str:
    """Return one line that names the new, changed and removed skills, "" without changes."""
    new = [f"{name} (“{_quoted(now[name].description)}”)" for name in now if name not in before]
    changed = [
        name
        for name, skill in now.items()
        if name in before and before[name].content_hash != skill.content_hash
    ]
    gone = [name for name in before if name not in now]
    parts = [
        *_part("new", new, "; "),
        *_part("changed, to be read again before use", changed, ", "),
        *_part("gone", gone, ", "),
    ]
    return f"[Vel: the skills have changed. {'. '.join(parts)}.]" if parts else ""


def _part(what: str, items: Sequence[str], separator: str) -> Iterable[str]:
    if items:
        more = f"{separator}and {len(items) - MAX_NAMED} more" if len(items) > MAX_NAMED else ""
        yield f"{what}: {separator.join(items[:MAX_NAMED])}{more}"


def _quoted(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(plain.translate(_REPLACED).split())
    if len(line) > DESCRIPTION_CHARACTERS:
        line = f"{line[: DESCRIPTION_CHARACTERS - 1].rstrip()}…"
    return line


def note_loaded(run_id: str, thread_id: str, call_id: str, skills: Sequence[PinnedSkill]) -> None:
    """Record that `skills` were loaded by a call, and make them active in the thread."""
    for skill in skills:
        _activate(thread_id, skill)
    _note(run_id, call_id, UseKind.LOADED, skills)


def note_deactivated(run_id: str, thread_id: str, call_id: str, skill: PinnedSkill) -> None:
    ActiveSkill.objects.filter(thread_id=thread_id, name=skill.name).delete()
    _note(run_id, call_id, UseKind.DEACTIVATED, [skill])


def note_files(
    run_id: str,
    thread_id: str,
    call_id: str,
    files: Sequence[tuple[PinnedSkill, str]],
    activates: Sequence[PinnedSkill],
) -> None:
    """Record that a call read or ran files of skills, and make `activates` active.

    `files` come from the text of a command, so only files that the versions contain are recorded.
    """
    for skill in activates:
        _activate(thread_id, skill)
    named = SkillFile.objects.filter(
        version_id__in={skill.version_id for skill, _ in files},
        path__in={path for _, path in files},
    )
    there = set(named.order_by().values_list("version_id", "path"))
    SkillUse.objects.bulk_create(
        [
            SkillUse(
                run_id=run_id,
                version_id=skill.version_id,
                kind=UseKind.MOUNTED if path == SKILL_FILE else UseKind.FILE,
                path=path,
                call_id=call_id,
            )
            for skill, path in files
            if (skill.version_id, path) in there
        ]
    )


def _activate(thread_id: str, skill: PinnedSkill) -> None:
    ActiveSkill.objects.update_or_create(
        thread_id=thread_id, name=skill.name, defaults={"version_id": skill.version_id}
    )


def _note(run_id: str, call_id: str, kind: UseKind, skills: Sequence[PinnedSkill]) -> None:
    SkillUse.objects.bulk_create(
        [
            SkillUse(run_id=run_id, version_id=skill.version_id, kind=kind, call_id=call_id)
            for skill in skills
        ]
    )

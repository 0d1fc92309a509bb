"""The page of one skill: files, versions and their differences, findings, use, and reviews."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from agents.doors.downloads import attached_bytes
from agents.doors.web.pages import PersonRequest, page
from agents.hidden_text import visible
from agents.review.parts import DiffSection, DiffStatus, Note, Review, one_line
from agents.review.spans import MarkedText, marked_text
from agents.services.errors import InvalidRequest, ServiceError
from skills_app.actions.library import (
    delete_skill_of_library,
    quarantine_version,
    review_version,
)
from skills_app.actions.rights import may_manage_library, may_review
from skills_app.actions.versions import export_version
from skills_app.library.package import SKILL_FILE
from skills_app.library.scopes import LIBRARY, describe_scope
from skills_app.models import Skill, SkillVersion
from skills_app.pages.agent_skills import number_of, reason_of
from skills_app.queries.comparison import FileChange, compare
from skills_app.queries.packages import (
    PackageEntry,
    as_text,
    package_entries,
    package_file,
    skills_for,
    version_of,
    versions_of,
)
from skills_app.queries.skills import skill_usage

SOURCE = "web"
SHOWN_VERSIONS = 100
_SCOPES = (gettext_noop("built-in"), gettext_noop("library"), gettext_noop("this agent's own"))
"""The texts of `describe_scope`, so that the catalogs have them."""


@page
@require_http_methods(["GET", "HEAD", "POST"])
def skill(request: PersonRequest, skill_id: int) -> HttpResponse:
    """Show a version (`?version=`), a file of it (`file=`) or its changes (`compare=`).

    A POST decides about the version `version`. Its `action` is review, quarantine or delete.
    """
    row = _skill_of(request, skill_id)
    if request.method == "POST":
        return _judge(request, row)
    version = _version_of(row, request.GET.get("version"))
    context = _context(request, row, version)
    if version is not None and "compare" in request.GET:
        other = _version_of(row, request.GET["compare"])
        assert other is not None
        context |= {"other": other, "review": comparison(other, version)}
    elif version is not None:
        context["file"] = _file_of(version, request.GET.get("file", SKILL_FILE))
    return render(request, "skills_app/skill.html", context)


@page
@require_safe
def skill_file(request: PersonRequest, skill_id: int, path: str) -> HttpResponse:
    """Return one file of `?version=` as a download that no browser opens as a page."""
    version = _version_of(_skill_of(request, skill_id), request.GET.get("version"))
    data = package_file(version.pk, path) if version else None
    if data is None:
        raise Http404("The skill has no such file.")
    return attached_bytes(data, path)


@page
@require_safe
def skill_export(request: PersonRequest, skill_id: int) -> HttpResponse:
    """Return `?version=` as a zip archive."""
    row = _skill_of(request, skill_id)
    version = _version_of(row, request.GET.get("version"))
    if version is None:
        raise Http404("The skill has no version.")
    try:
        archive = export_version(version)
    except ServiceError as error:
        messages.error(request, visible(error.message))
        return redirect("web:skill", skill_id=row.pk)
    return attached_bytes(archive.data, archive.name, "application/zip")


def _skill_of(request: PersonRequest, skill_id: int) -> Skill:
    skills = skills_for(request.user).select_related("current", "agent")
    return get_object_or_404(skills, pk=skill_id)


def _version_of(row: Skill, requested: str | None) -> SkillVersion | None:
    """Return the version `requested`, by default the current one or else the latest.

    Raises `Http404` if it does not exist.
    """
    if requested is None:
        return version_of(row)
    if not (requested.isascii() and requested.isdecimal() and len(requested) < 10):
        raise Http404("The skill has no such version.")
    version = version_of(row, int(requested))
    if version is None:
        raise Http404("The skill has no such version.")
    return version


def _context(request: PersonRequest, row: Skill, version: SkillVersion | None) -> dict[str, Any]:
    versions = list(versions_of(row)[: SHOWN_VERSIONS + 1])
    latest = versions[0] if versions else None
    user = request.user
    return {
        "skill": row,
        "scope": gettext(describe_scope(row.scope)),
        "version": version,
        "facts": facts_of(version) if version else [],
        "findings": version.findings if version else [],
        "entries": package_entries(version.pk) if version else [],
        "versions": versions[:SHOWN_VERSIONS],
        "more_versions": len(versions) > SHOWN_VERSIONS,
        "waiting": latest if latest and latest.pk != row.current_id else None,
        "usage": skill_usage(row),
        "may_review": may_review(user),
        "may_delete": row.scope == LIBRARY and may_manage_library(user),
    }


def _file_of(version: SkillVersion, path: str) -> Any:
    entry = next((each for each in package_entries(version.pk) if each.path == path), None)
    if entry is None:
        raise Http404("The version has no such file.")
    return shown_file(entry, package_file(version.pk, path) or b"", version.findings)


def _judge(request: PersonRequest, row: Skill) -> HttpResponse:
    form, user = request.POST, request.user
    version = _version_of(row, form.get("version", ""))
    assert version is not None
    try:
        match form.get("action"):
            case "review":
                review_version(
                    version.pk,
                    by=user,
                    content_hash=form.get("content_hash", ""),
                    seen_trust=form.get("trust", ""),
                )
                message = gettext("Version %(number)s is reviewed. New runs get it.")
            case "quarantine":
                quarantine_version(version.pk, by=user, reason=reason_of(request))
                message = gettext("Version %(number)s is in quarantine: no agent gets it.")
            case "delete":
                base = number_of(request, "base")
                delete_skill_of_library(row.pk, by=user, base_version=base, source=SOURCE)
                text = gettext("%(skill)s was deleted from the library.") % {"skill": row.name}
                messages.success(request, visible(text))
                return redirect("web:skill-library")
            case _:
                raise InvalidRequest(gettext("Choose review, quarantine or delete."))
    except ServiceError as error:
        messages.error(request, visible(error.message))
    else:
        messages.success(request, message % {"number": version.number})
    return redirect(f"{reverse('web:skill', args=[row.pk])}?version={version.number}")


SHOWN_CHARACTERS = 400_000
LINE_CHARACTERS = 5_000
"""The maximum length of one line on a page, in characters. The download has the rest."""
COMPARED_FILES = 100
_STATUS: dict[str, DiffStatus] = {"added": "new", "removed": "deleted", "changed": "changed"}


@dataclass(frozen=True, slots=True)
class LineFinding:
    """A finding of the scan, with its position in the text of the file."""

    start: int
    end: int
    severity: str
    description: str


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file as the page shows it.

    `text` is None for a binary file. `cut` says that the page shows only a part.
    """

    entry: PackageEntry
    text: MarkedText | None
    cut: bool


def shown_file(entry: PackageEntry, data: bytes, findings: Sequence[dict[str, Any]]) -> ShownFile:
    """Return a file for the page, with those of the version's stored `findings` that are in it."""
    text = as_text(data)
    if text is None:
        return ShownFile(entry, None, False)
    lines = text[:SHOWN_CHARACTERS].split("\n")
    cut = len(text) > SHOWN_CHARACTERS or any(len(line) > LINE_CHARACTERS for line in lines)
    lines = [_cut_line(line) for line in lines]
    marks = _of_lines(lines, [held for held in findings if held["path"] == entry.path])
    displayed = marked_text("\n".join(lines), marks)
    return ShownFile(entry, displayed, cut or displayed.left_out > 0)


def _cut_line(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    more = number_format(len(line) - LINE_CHARACTERS, force_grouping=True)
    cut = gettext("… %(count)s more characters") % {"count": more}
    return f"{line[:LINE_CHARACTERS]} {cut}"


def _of_lines(lines: Sequence[str], findings: Iterable[dict[str, Any]]) -> list[LineFinding]:
    """Return the findings in the shown lines.

    Findings in a file as a whole are listed elsewhere.
    """
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    return [
        LineFinding(
            starts[held["line"] - 1],
            starts[held["line"]] - 1,
            held["severity"],
            held["message"],
        )
        for held in findings
        if 0 < held["line"] <= len(lines)
    ]


def comparison(old: SkillVersion, new: SkillVersion) -> Review:
    """Return the changes from `old` to `new`. Files without a diff have a reason."""
    compared = compare(old, new)
    sections = tuple(_section(change) for change in compared.files[:COMPARED_FILES])
    notes = []
    if not compared.files:
        notes.append(Note(gettext("All files are the same, byte for byte.")))
    if len(compared.files) > COMPARED_FILES:
        more = len(compared.files) - COMPARED_FILES
        text = ngettext(
            "%(count)s more changed file is not shown here.",
            "%(count)s more changed files are not shown here.",
            more,
        )
        notes.append(Note(text % {"count": more}, "warning"))
    title = gettext("Version %(old)s → version %(new)s") % {"old": old.number, "new": new.number}
    return Review(title, sections, tuple(notes))


def _section(change: FileChange) -> DiffSection:
    notes = []
    if change.mode:
        notes.append(Note(gettext("The file %(mode)s.") % {"mode": change.mode}, "warning"))
    if change.review is not None:
        section = change.review.sections[0]
        assert isinstance(section, DiffSection)
        return replace(section, notes=(*section.notes, *notes))
    if change.why:
        text = gettext("No comparison: %(why)s.") % {"why": change.why}
        notes.append(Note(text, "warning"))
    words = gettext("%(size)s bytes")
    sizes = [
        words % {"size": number_format(side.size_bytes, force_grouping=True)}
        for side in (change.before, change.after)
        if side
    ]
    notes.append(Note(" → ".join(sizes)))
    status = _STATUS[change.status]
    return DiffSection(one_line(change.path), status, (), 0, 0, (), tuple(notes))


def facts_of(version: SkillVersion) -> list[tuple[str, str]]:
    """Return (label, text) of the fields of SKILL.md, except name and description."""
    head = version.fields
    tools = head.allowed_tools
    facts = [
        (gettext("Title"), head.title),
        (gettext("Version"), head.version),
        (gettext("Author"), head.author),
        (gettext("Licence"), head.license),
        (gettext("Compatibility"), head.compatibility),
        (gettext("Tags"), ", ".join(head.tags)),
        (gettext("Triggers"), ", ".join(head.triggers)),
        (gettext("Requires"), ", ".join(head.requires)),
        (gettext("Narrows tools to"), gettext("none") if tools == () else ", ".join(tools or ())),
        (gettext("Needs tools"), ", ".join(head.tools_required)),
        *head.metadata.items(),
        *head.extra.items(),
    ]
    return [(visible(name), visible(value)) for name, value in facts if value]

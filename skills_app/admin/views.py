"""Further admin pages of a skill: a file, a comparison, a download and an export."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import JournalAdmin
from agents.doors.admin.strict_pages import STYLES, strict
from agents.doors.admin.text import changes
from agents.doors.downloads import attached_bytes
from agents.hidden_text import visible
from agents.services.errors import ServiceError
from skills_app.actions.versions import export_version
from skills_app.admin.code import shown_code
from skills_app.admin.page import findings_by_severity
from skills_app.models import Skill, SkillVersion
from skills_app.queries.comparison import compare
from skills_app.queries.packages import as_text, package_entries, package_file, version_of

_KINDS = (
    (b"\x7fELF", _("a program (ELF)")),
    (b"MZ", _("a program (Windows)")),
    (b"\xcf\xfa\xed\xfe", _("a program (Mach-O)")),
    (b"\xca\xfe\xba\xbe", _("a program (Mach-O or Java)")),
    (b"\0asm", _("a program (WebAssembly)")),
    (b"PK\3\4", _("a zip archive, or a document that is one")),
    (b"\x1f\x8b", _("a gzip archive")),
    (b"%PDF", _("a PDF document")),
    (b"\x89PNG", _("a PNG image")),
    (b"\xff\xd8\xff", _("a JPEG image")),
    (b"GIF8", _("a GIF image")),
    (b"SQLite format 3\0", _("an SQLite database")),
)


def skill_or_404(page: JournalAdmin, request: HttpRequest, pk: int) -> Any:
    """Return the skill.

    Raises:
        PermissionDenied: The user may view no skills here.
        Http404: The skill does not exist, or the user may not see it.
    """
    if not page.has_view_permission(request):
        raise PermissionDenied
    skill = page.get_queryset(request).select_related("current", "agent").filter(pk=pk).first()
    if skill is None:
        raise Http404("There is no such skill that you may see.")
    return skill


def version_or_404(skill: Skill, number: int) -> SkillVersion:
    version = version_of(skill, number)
    if version is None:
        raise Http404("The skill has no such version.")
    return version


def page_response(
    page: JournalAdmin, request: HttpRequest, template: str, status: int = 200, **context: Any
) -> HttpResponse:
    """Return an admin page with the context `context`."""
    whole = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": STYLES,
        **context,
    }
    request.current_app = page.admin_site.name
    return strict(TemplateResponse(request, f"skills_app/admin/{template}", whole, status=status))


def file_page(page: JournalAdmin, request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Show one file: a text highlighted, a binary file as a description."""
    skill = skill_or_404(page, request, pk)
    version = version_or_404(skill, number)
    path = request.GET.get("path", "")
    data = package_file(version.pk, path)
    if data is None:
        raise Http404("The version has no such file.")
    entry = next(entry for entry in package_entries(version.pk) if entry.path == path)
    text = as_text(data)
    found = [finding for finding in version.findings if finding.get("path") == path]
    marked = {int(finding.get("line", 0)) for finding in found}
    code = shown_code(path, text) if text is not None else None
    return page_response(
        page,
        request,
        "file.html",
        title=gettext("%(path)s of %(skill)s v%(version)s")
        % {"path": visible(path), "skill": visible(skill.name), "version": number},
        skill=skill,
        skill_name=visible(skill.name),
        version=version,
        path=path,
        shown_path=visible(path),
        entry=entry,
        kind=kind_of(data) if text is None else gettext("text"),
        code=code,
        lines=[(at in marked, pieces) for at, pieces in enumerate(code.lines, 1)] if code else [],
        findings=findings_by_severity(found),
    )


def kind_of(data: bytes) -> str:
    """Return the type of a binary file in words, such as `a PNG image`, by its first bytes."""
    found = (str(name) for start, name in _KINDS if data.startswith(start))
    return next(found, gettext("binary data"))


def download(page: JournalAdmin, request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Return one file as a download that no browser opens as a page."""
    version = version_or_404(skill_or_404(page, request, pk), number)
    path = request.GET.get("path", "")
    data = package_file(version.pk, path)
    if data is None:
        raise Http404("The version has no such file.")
    return attached_bytes(data, path)


def export(page: JournalAdmin, request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Return the version as a zip archive in the strict form of the specification."""
    version = version_or_404(skill_or_404(page, request, pk), number)
    try:
        archive = export_version(version)
    except ServiceError as error:
        return HttpResponse(error.message, status=409, content_type="text/plain; charset=utf-8")
    return attached_bytes(archive.data, archive.name, "application/zip")


def compare_page(page: JournalAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """Show the changes between the versions `?from=1&to=2`."""
    skill = skill_or_404(page, request, pk)
    numbers = [request.GET.get(name, "") for name in ("from", "to")]
    if not all(number.isdecimal() and len(number) < 9 for number in numbers):
        raise Http404("Say which versions: ?from=1&to=2")
    before, after = (version_or_404(skill, int(number)) for number in numbers)
    comparison = compare(before, after)
    return page_response(
        page,
        request,
        "compare.html",
        title=gettext("%(skill)s: version %(before)s to %(after)s")
        % {"skill": visible(skill.name), "before": before.number, "after": after.number},
        skill=skill,
        skill_name=visible(skill.name),
        before=before,
        after=after,
        comparison=comparison,
        new_findings=findings_by_severity(comparison.findings),
        head=changes(before.head, after.head),
    )

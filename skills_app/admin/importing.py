"""Import a skill in two steps: a preview, then the storage of exactly the shown package.

The preview stores nothing. A small upload is embedded in the page and sent again with the
confirmation; a large one must be chosen again. In both cases, the stored package must have the hash
that was shown.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext

from agents.doors.admin.journal import JournalAdmin, person
from agents.doors.admin.text import shown
from agents.hidden_text import visible
from agents.models import Agent
from agents.selectors.visible import agents_for
from agents.services.errors import ServiceError
from skills_app.actions.library import Imported, import_skill
from skills_app.actions.rights import may_change_skills, may_manage_library, may_review
from skills_app.admin.page import findings_by_severity, head_facts, tools_left
from skills_app.admin.views import page_response
from skills_app.library.package import SKILL_FILE, Package
from skills_app.library.problems import Problem
from skills_app.library.scan import findings_json, has_danger, scan_package
from skills_app.library.scopes import LIBRARY, agent_scope
from skills_app.library.sources.archive import archive_package
from skills_app.models import Skill
from skills_app.queries.packages import as_text
from skills_app.settings import SkillSettings

SOURCE = "admin"
CARRIED_BYTES = 1_500_000
"""The maximum size in bytes of an upload that the page embeds.

As base64, this is below Django's limit for form fields.
"""
SHOWN_CHARACTERS = 200_000
FILES_SHOWN = 1_000


class ImportForm(forms.Form):
    """The form of both steps: first a file, then the shown hash and the destination."""

    file = forms.FileField(required=False, allow_empty_file=True)
    carried = forms.CharField(required=False, strip=False)
    filename = forms.CharField(required=False, max_length=500)
    target = forms.ChoiceField()
    reason = forms.CharField(required=False, max_length=2_000)
    accept = forms.BooleanField(required=False)
    content_hash = forms.RegexField(r"[0-9a-f]{64}", required=False)

    def __init__(self, *args: Any, targets: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["target"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = targets


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file. `name` is the name that the sender gave."""

    data: bytes
    name: str


def own_agents(request: HttpRequest) -> list[Agent]:
    """Return the agents for which the user may import own skills."""
    user = person(request)
    found = agents_for(user).order_by("name", "pk")
    return [agent for agent in found if may_change_skills(user, agent)]


def import_page(page: JournalAdmin, request: HttpRequest) -> HttpResponse:
    """Show the form, a preview of the chosen file, or import the confirmed package."""
    user = person(request)
    agents = {agent.pk: agent for agent in own_agents(request)}
    the_library = ("", gettext("the library"))
    targets = [the_library] if may_manage_library(user) else []
    own = gettext("own skill of %(agent)s")
    targets += [(pk, own % {"agent": visible(agent.slug)}) for pk, agent in agents.items()]
    if not targets:
        raise PermissionDenied
    context: dict[str, Any] = {
        "title": gettext("Import a skill"),
        "targets": targets,
        "chosen": request.POST.get("target", request.GET.get("agent", "")),
        "limit": SkillSettings.now().ARCHIVE_BYTES,
        "may_accept": may_review(user),
        "reason": request.POST.get("reason", ""),
    }
    if request.method != "POST":
        return page_response(page, request, "import.html", **context)
    form = ImportForm(request.POST, request.FILES, targets=targets)
    form.fields["target"].required = the_library not in targets
    if not form.is_valid():
        errors = [visible(f"{name}: {messages[0]}") for name, messages in form.errors.items()]
        return page_response(page, request, "import.html", 400, errors=errors, **context)
    data = form.cleaned_data
    upload = _upload_of(data)
    if upload is None:
        errors = [gettext("Choose a file: a zip or .skill archive, or a SKILL.md.")]
        return page_response(page, request, "import.html", 400, errors=errors, **context)
    package, problems = archive_package(upload.data, upload.name)
    context |= {"upload": upload, "upload_name": visible(upload.name)}
    context["problems"] = [_shown_problem(problem) for problem in problems]
    if package is None:
        return page_response(page, request, "import.html", 400, is_refused=True, **context)
    agent = agents.get(data["target"])
    if data["content_hash"] == package.content_hash:
        return _store(page, request, package, agent, upload, data, context)
    context |= _preview(package, agent)
    if len(upload.data) <= CARRIED_BYTES:
        context["carried"] = base64.b64encode(upload.data).decode()
    status = 200
    if data["content_hash"]:
        status = 409
        context["errors"] = [gettext("This is not what was shown before: look at it again.")]
    return page_response(page, request, "import.html", status, **context)


def _upload_of(data: dict[str, Any]) -> Upload | None:
    """Return the chosen file, or else the file embedded in the page, None without either."""
    file = data["file"]
    if file is not None:
        # Read one byte more than allowed, so that the reader of archives reports the size.
        return Upload(file.read(SkillSettings.now().ARCHIVE_BYTES + 1), file.name or "")
    try:
        carried = base64.b64decode(data["carried"], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Upload(carried, data["filename"]) if carried else None


def _store(
    page: JournalAdmin,
    request: HttpRequest,
    package: Package,
    agent: Agent | None,
    upload: Upload,
    data: dict[str, Any],
    context: dict[str, Any],
) -> HttpResponse:
    try:
        imported = import_skill(
            package,
            by=person(request),
            source=SOURCE,
            origin=upload.name,
            agent=agent,
            accept=data["accept"],
            reason=data["reason"],
        )
    except ServiceError as error:
        context |= {"errors": [visible(error.message)], **_preview(package, agent)}
        return page_response(page, request, "import.html", 409, **context)
    version = imported.version
    if imported.created:
        page.log_addition(
            request, version.skill, f"Imported version {version.number} of {visible(upload.name)}."
        )
    values = {"skill": visible(package.head.name), "version": version.number}
    page.report(request, _outcome(imported) % values)
    if not page.has_view_permission(request):  # an agent's owner, who may only import
        return HttpResponseRedirect(request.path)
    shown_page = reverse(f"{page.admin_site.name}:skills_app_skill_change", args=[version.skill_id])
    return HttpResponseRedirect(f"{shown_page}?version={version.number}")


def _outcome(imported: Imported) -> str:
    if not imported.created:
        return gettext(
            "Skill %(skill)s v%(version)s: it already existed, with exactly these bytes."
        )
    if imported.version.trust == "quarantined":
        return gettext(
            "Skill %(skill)s v%(version)s: in quarantine because of the scan, until somebody "
            "reviews it."
        )
    if imported.waits:
        return gettext("Skill %(skill)s v%(version)s: waits for review.")
    return gettext("Skill %(skill)s v%(version)s: imported; agents can have it.")


def _preview(package: Package, agent: Agent | None) -> dict[str, Any]:
    """Return the template context of the preview, with the findings of the scan."""
    findings = scan_package(package)
    return {
        "package": package,
        "name": visible(package.head.name),
        "description": visible(package.head.description),
        "existing": _existing(package, agent),
        "facts": head_facts(package.head),
        "tools": tools_left(package.head),
        "findings": findings_by_severity(findings_json(findings)),
        "is_dangerous": has_danger(findings),
        "skill_file": shown(package.text, limit=SHOWN_CHARACTERS),
        "files": [
            {
                "name": visible(file.path),
                "size": len(file.data),
                "executable": file.executable,
                "is_text": as_text(file.data) is not None,
                "sha256": file.sha256,
            }
            for file in package.files[:FILES_SHOWN]
            if file.path != SKILL_FILE
        ],
        "content_hash": package.content_hash,
    }


def _existing(package: Package, agent: Agent | None) -> Any:
    """Return the skill that gets a new version, None if the import creates one."""
    scope = agent_scope(agent.pk) if agent else LIBRARY
    return Skill.objects.filter(scope=scope, name=package.head.name, is_deleted=False).first()


def _shown_problem(problem: Problem) -> dict[str, str]:
    return {
        "severity": str(problem.severity),
        "path": visible(problem.path),
        "message": visible(problem.message),
    }

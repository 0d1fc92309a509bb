"""Review a version of a skill, or put it into quarantine. The decision is for the shown bytes."""

from __future__ import annotations

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.doors.admin.journal import JournalAdmin, person
from agents.doors.admin.text import changes
from agents.hidden_text import visible
from agents.services.errors import Conflict, ServiceError
from skills_app.actions.library import quarantine_version, review_version
from skills_app.actions.rights import may_review
from skills_app.admin.page import findings_by_severity, where_from
from skills_app.admin.views import page_response, skill_or_404, version_or_404
from skills_app.models import Skill, SkillVersion, Trust
from skills_app.queries.comparison import compare

_HASH = r"[0-9a-f]{64}"
_VOUCHED = (Trust.REVIEWED, Trust.BUILT_IN)


class ReviewForm(forms.Form):
    """The decision, with the hash of the shown version.

    `base` is the version that it was compared to, empty if everything was shown as new.
    """

    answer = forms.ChoiceField(choices=[("accept", _("accept")), ("quarantine", _("quarantine"))])
    content_hash = forms.RegexField(_HASH)
    base = forms.RegexField(_HASH, required=False)
    reason = forms.CharField(required=False, max_length=2_000)

    def clean(self) -> dict[str, str]:
        data = self.cleaned_data
        if data.get("answer") == "quarantine" and not data.get("reason"):
            self.add_error("reason", gettext("Give a reason: the next reviewer reads it."))
        return data


def review_page(page: JournalAdmin, request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Show a version's changes, the scan's findings, and the form for the decision."""
    skill = skill_or_404(page, request, pk)
    if not may_review(person(request)):
        raise PermissionDenied
    version = version_or_404(skill, number)
    errors: dict[str, list[str]] = {}
    if request.method == "POST":
        form = ReviewForm(request.POST)
        if form.is_valid():
            return _answer(page, request, skill, version, form.cleaned_data)
        errors = {name: list(map(str, messages)) for name, messages in form.errors.items()}
    base = _base_of(skill, version)
    return page_response(
        page,
        request,
        "review.html",
        status=400 if errors else 200,
        title=gettext("Review %(skill)s v%(version)s")
        % {"skill": visible(skill.name), "version": number},
        skill=skill,
        skill_name=visible(skill.name),
        place=where_from(skill),
        description=visible(version.fields.description),
        version=version,
        origin=visible(version.origin),
        version_reason=visible(version.reason),
        base=base,
        is_current=version.pk == skill.current_id,
        is_quarantined=version.trust == Trust.QUARANTINED,
        is_reviewed=version.trust in _VOUCHED,
        comparison=compare(base, version) if base else None,
        head=changes(base.head, version.head) if base else [],
        # A reviewer is responsible for all bytes, so show all if the earlier version has no review.
        whole=None if base and base.trust in _VOUCHED else compare(None, version),
        base_trust=base.get_trust_display() if base else "",
        findings=findings_by_severity(version.findings),
        errors=errors,
        typed_reason=request.POST.get("reason", ""),
    )


def _base_of(skill: Skill, version: SkillVersion) -> SkillVersion | None:
    """Return the current version to compare with, None if `version` itself is current."""
    current = skill.current
    return None if current is None or current.pk == version.pk else current


def _answer(
    page: JournalAdmin,
    request: HttpRequest,
    skill: Skill,
    version: SkillVersion,
    data: dict[str, str],
) -> HttpResponse:
    values = {"skill": visible(skill.name), "version": version.number}
    base = _base_of(skill, version)
    try:
        if (base.content_hash if base else "") != data["base"]:
            raise Conflict(
                gettext(
                    "Agents get another version by now than the one that this was compared to."
                ),
                code="stale",
            )
        if data["answer"] == "accept":
            review_version(version.pk, by=person(request), content_hash=data["content_hash"])
            done = gettext("Skill %(skill)s v%(version)s: accepted, as reviewed.")
        else:
            if version.content_hash != data["content_hash"]:
                raise Conflict(
                    gettext("The version holds other bytes than were shown."), code="stale"
                )
            quarantine_version(version.pk, by=person(request), reason=data["reason"])
            done = gettext("Skill %(skill)s v%(version)s: in quarantine.")
    except Conflict as error:
        return page_response(
            page,
            request,
            "stale.html",
            status=409,
            title=gettext("Skill %(skill)s v%(version)s: look again") % values,
            skill=skill,
            version=version,
            message=visible(error.message),
        )
    except ServiceError as error:
        page.report(request, visible(error.message), failed=True)
        return HttpResponseRedirect(request.path)
    what = "Accepted" if data["answer"] == "accept" else "Put into quarantine"
    page.log_change(
        request, skill, f"{what}: version {version.number} ({version.content_hash[:12]})."
    )
    page.report(request, done % values)
    return HttpResponseRedirect(
        reverse(f"{page.admin_site.name}:skills_app_skill_change", args=[skill.pk])
    )

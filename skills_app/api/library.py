"""Endpoints for the library: everybody can read, permitted people import, review and delete."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import RequestDataTooBig
from django.db.models import QuerySet
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import IDEMPOTENCY_KEY, Page, operation
from agents.doors.rest.serializers import StrictSerializer, read_body, read_query
from agents.doors.rest.wire import StrictJSONParser
from agents.models import TokenScope
from agents.services.errors import NotFound
from skills_app.actions.library import (
    delete_skill_of_library,
    import_skill,
    sync_shared_skills,
)
from skills_app.actions.uploads import InvalidPackage, PackageTooLarge, origin_of, read_upload
from skills_app.api.serializers import (
    DeleteSkillQuery,
    LibraryQuery,
    UploadForm,
    problems_of,
    show_head,
    show_skill,
    show_usage,
    show_version,
)
from skills_app.api.shapes import (
    FoundSkillShape,
    ImportedSkillShape,
    WholeSkillShape,
)
from skills_app.library.package import Package
from skills_app.library.read import body_of
from skills_app.models import Skill
from skills_app.queries.packages import (
    skills_for,
    version_of,
    versions_of,
    waiting_trusts,
)
from skills_app.queries.search import SkillFilter, filter_skills, search_skills
from skills_app.queries.skills import library_for, skill_usage
from skills_app.settings import SkillSettings

FORM_BYTES = 100_000
"""The maximum size in bytes of the form without its file."""


class UploadView(ApiView):
    """Accepts JSON, and multipart forms whose `file` is a package."""

    parser_classes = (StrictJSONParser, MultiPartParser)  # type: ignore[assignment]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Check the size before authentication, which reads the whole form to find a CSRF token.
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length) > SkillSettings.now().ARCHIVE_BYTES + FORM_BYTES:
            raise RequestDataTooBig("The upload is larger than a package may be.")
        super().initial(request, *args, **kwargs)


def is_form(request: Request) -> bool:
    """Return whether the body is a multipart form, not JSON."""
    return str(request.content_type).lower().startswith("multipart/form-data")


def read_form(kind: type[StrictSerializer], request: Request) -> tuple[Package, dict[str, Any]]:
    """Return (the package in `file`, the other fields) of a form. Raises `ValidationError`."""
    form = read_body(kind, request)
    try:
        return read_upload(form.pop("file")), form
    except PackageTooLarge as error:
        raise RequestDataTooBig(error.message) from None
    except InvalidPackage as error:
        raise problems_of(error) from None


SOURCE = "api"
SHOWN_VERSIONS = 100
"""The maximum number of versions in the answer for one skill, latest first."""


class Library(UploadView):
    """`GET /skills?q=&scope=&trust=&tag=` and `POST /skills`, a form with a package"""

    scopes: ClassVar = {"GET": TokenScope.READ, "POST": TokenScope.MANAGE}

    @operation(
        "list_skills",
        "List or search the library",
        query=LibraryQuery,
        answer=Page(FoundSkillShape),
    )
    def get(self, request: Request) -> Response:
        query = read_query(LibraryQuery, request)
        sync_shared_skills()
        terms = SkillFilter(query.get("scope", ""), query.get("trust", ""), query.get("tag", ""))
        found = filter_skills(library_for(person(request)), terms)
        limit = query["limit"]
        if "q" in query:
            matches = search_skills(found, query["q"], limit=limit)
            shown = show_skills([match.skill for match in matches])
            results = [
                {**skill, "score": match.score} for skill, match in zip(shown, matches, strict=True)
            ]
            return Response({"results": results, "next_cursor": None})
        rows = list(
            found.filter(pk__gt=int(query.get("cursor", "0")))
            .select_related("current")
            .order_by("pk")[: limit + 1]
        )
        next_cursor = str(rows[limit - 1].pk) if len(rows) > limit else None
        return Response({"results": show_skills(rows[:limit]), "next_cursor": next_cursor})

    @operation(
        "import_skill",
        "Import a package",
        form=UploadForm,
        answers={200: ImportedSkillShape, 201: ImportedSkillShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY,),
    )
    @idempotent
    def post(self, request: Request) -> Response:
        user = person(request)
        package, form = read_form(UploadForm, request)
        made = import_skill(
            package,
            by=user,
            source=SOURCE,
            origin=origin_of(request.FILES["file"]),
            accept=form["accept"] == "true",
            reason=form["reason"],
        )
        skill = Skill.objects.select_related("current").get(pk=made.version.skill_id)
        return Response(
            {
                "skill": show_skills([skill])[0],
                "version": show_version(made.version, skill.current_id),
                "created": made.created,
                "waits": made.waits,
            },
            status=201 if made.created else 200,
        )


class OneSkill(ApiView):
    """`GET` and `DELETE /skills/{id}`"""

    scopes: ClassVar = {"GET": TokenScope.READ, "DELETE": TokenScope.MANAGE}

    @operation("get_skill", "Read a skill", answer=WholeSkillShape)
    def get(self, request: Request, skill_id: str) -> Response:
        skill = skill_of(skills_for(person(request)), skill_id)
        version = version_of(skill)
        return Response(
            {
                **show_skills([skill])[0],
                "head": show_head(version) if version else None,
                "instructions": body_of(version.content or "") if version else "",
                "versions": [
                    show_version(each, skill.current_id)
                    for each in versions_of(skill)[:SHOWN_VERSIONS]
                ],
                "usage": [show_usage(usage) for usage in skill_usage(skill)],
            }
        )

    @operation(
        "delete_skill", "Delete a skill", query=DeleteSkillQuery, answers={204: None}, errors=(409,)
    )
    def delete(self, request: Request, skill_id: str) -> Response:
        user = person(request)
        skill = skill_of(library_for(user), skill_id)
        base = read_query(DeleteSkillQuery, request).get("base_version")
        delete_skill_of_library(skill.pk, by=user, base_version=base, source=SOURCE)
        return Response(status=204)


def show_skills(skills: list[Skill]) -> list[dict[str, Any]]:
    trusts = waiting_trusts(skills)
    return [show_skill(skill, trusts.get(skill.pk)) for skill in skills]


def skill_of(skills: QuerySet[Skill], skill_id: str) -> Skill:
    found = None
    if skill_id.isascii() and skill_id.isdecimal() and len(skill_id) < 19:
        found = skills.select_related("current").filter(pk=int(skill_id)).first()
    if found is None:
        raise NotFound(f"There is no skill {skill_id!r} that you may see.", code="unknown_skill")
    return found

"""The library of skills: read by everybody, filled, reviewed and cleared by those who may."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import ApiView, person
from agents.api.idempotency import idempotent
from agents.api.operations import IDEMPOTENCY_KEY, Content, Page, operation
from agents.api.serializers.skill_shapes import (
    ChangedVersionShape,
    FoundSkillShape,
    ImportedSkillShape,
    PackageFilesShape,
    WholeSkillShape,
)
from agents.api.serializers.skills import (
    DeleteSkillQuery,
    LibraryQuery,
    QuarantineBody,
    ReviewBody,
    UploadForm,
    VersionQuery,
    show_head,
    show_package_file,
    show_skill,
    show_usage,
    show_version,
)
from agents.api.serializers.strict import read_body, read_query
from agents.api.skill_uploads import UploadView, read_form
from agents.downloads import attached_bytes, plain_text
from agents.models import TokenScope
from agents.selectors.skill_packages import (
    as_text,
    package_entries,
    package_file,
    skills_for,
    version_of,
    versions_of,
    waiting_trusts,
)
from agents.selectors.skill_search import SkillFilter, filter_skills, search_skills
from agents.selectors.skills import library_for, skill_usage
from agents.services.errors import NotFound
from agents.services.skill_export import export_version
from agents.services.skill_library import (
    delete_skill_of_library,
    import_skill,
    quarantine_version,
    review_version,
    sync_shared_skills,
)
from agents.services.skill_uploads import origin_of
from skills_app.models import Skill, SkillVersion
from skills_app.read import body_of

SOURCE = "api"
SHOWN_VERSIONS = 100
"""The latest ones, as one skill's answer lists them."""


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


class SkillFiles(ApiView):
    """`GET /skills/{id}/files?version=`"""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_skill_files", "List a skill's files", query=VersionQuery, answer=PackageFilesShape
    )
    def get(self, request: Request, skill_id: str) -> Response:
        version = asked_version(request, skill_id)
        return Response(
            {
                "version": version.number,
                "content_hash": version.content_hash,
                "results": [show_package_file(entry) for entry in package_entries(version.pk)],
            }
        )


class SkillFileContent(ApiView):
    """`GET /skills/{id}/files/{path}?version=`: text as plain text, all else as an attachment."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "download_skill_file",
        "Read a skill's file",
        query=VersionQuery,
        answer=Content(("text/plain", "application/octet-stream")),
    )
    def get(self, request: Request, skill_id: str, path: str) -> HttpResponse:
        version = asked_version(request, skill_id)
        data = package_file(version.pk, path)
        if data is None:
            raise NotFound(f"The skill has no file {path[:200]!r}.", code="unknown_file")
        return attached_bytes(data, path) if as_text(data) is None else plain_text(data)


class SkillExport(ApiView):
    """`GET /skills/{id}/export?version=`: a zip that holds to the specification."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "export_skill",
        "Export a skill",
        query=VersionQuery,
        answer=Content(("application/zip",)),
        errors=(409,),
    )
    def get(self, request: Request, skill_id: str) -> HttpResponse:
        archive = export_version(asked_version(request, skill_id))
        return attached_bytes(archive.data, archive.name, "application/zip")


class ReviewSkill(ApiView):
    """`POST /skills/{id}/versions/{number}/review`: vouch for exactly these bytes."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "review_skill",
        "Vouch for a version",
        body=ReviewBody,
        answer=ChangedVersionShape,
        errors=(409,),
    )
    def post(self, request: Request, skill_id: str, number: int) -> Response:
        user = person(request)
        version = numbered_version(user, skill_id, number)
        body = read_body(ReviewBody, request)
        review_version(
            version.pk, by=user, content_hash=body["content_hash"], seen_trust=body.get("trust")
        )
        return show_changed_version(user, skill_id, number)


class QuarantineSkill(ApiView):
    """`POST /skills/{id}/versions/{number}/quarantine`: no agent gets this version again."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "quarantine_skill",
        "Put a version in quarantine",
        body=QuarantineBody,
        answer=ChangedVersionShape,
        errors=(409,),
    )
    def post(self, request: Request, skill_id: str, number: int) -> Response:
        user = person(request)
        version = numbered_version(user, skill_id, number)
        body = read_body(QuarantineBody, request)
        quarantine_version(version.pk, by=user, reason=body["reason"])
        return show_changed_version(user, skill_id, number)


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


def asked_version(request: Request, skill_id: str) -> SkillVersion:
    """The version that the query asks for."""
    number = read_query(VersionQuery, request).get("version")
    skill = skill_of(skills_for(person(request)), skill_id)
    version = version_of(skill, number)
    if version is None:
        raise NotFound(f"{skill.name} has no such version.", code="unknown_version")
    return version


def numbered_version(user: AbstractBaseUser, skill_id: str, number: int) -> SkillVersion:
    skill = skill_of(skills_for(user), skill_id)
    version = version_of(skill, number)
    if version is None:
        raise NotFound(f"{skill.name} has no version {number}.", code="unknown_version")
    return version


def show_changed_version(user: AbstractBaseUser, skill_id: str, number: int) -> Response:
    skill = skill_of(skills_for(user), skill_id)
    version = numbered_version(user, skill_id, number)
    return Response(
        {
            "skill": show_skills([skill])[0],
            "version": show_version(version, skill.current_id),
        }
    )

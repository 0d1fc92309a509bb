"""Endpoints for the versions of a skill: files, exports and reviews."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.doors.downloads import attached_bytes, plain_text
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import Content, operation
from agents.doors.rest.serializers import read_body, read_query
from agents.models import TokenScope
from agents.services.errors import NotFound
from skills_app.actions.library import quarantine_version, review_version
from skills_app.actions.versions import export_version
from skills_app.api.library import show_skills, skill_of
from skills_app.api.serializers import (
    QuarantineBody,
    ReviewBody,
    VersionQuery,
    show_package_file,
    show_version,
)
from skills_app.api.shapes import ChangedVersionShape, PackageFilesShape
from skills_app.models import SkillVersion
from skills_app.queries.packages import (
    as_text,
    package_entries,
    package_file,
    skills_for,
    version_of,
)


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
    """`GET /skills/{id}/files/{path}?version=`: text as plain text, others as an attachment."""

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
    """`GET /skills/{id}/export?version=`: a zip that follows the specification."""

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
    """`POST /skills/{id}/versions/{number}/review`: accept exactly these bytes."""

    scopes: ClassVar = {"POST": TokenScope.MANAGE}

    @operation(
        "review_skill",
        "Accept a version as reviewed",
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


def asked_version(request: Request, skill_id: str) -> SkillVersion:
    """Return the version that the query names, by default the current one, or else the latest.

    Raises:
        NotFound: There is no such skill or version.
    """
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

"""Serializers for skills and for the requests about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.serializers import Flag, PageQuery, StrictSerializer, Text
from skills_app.actions.uploads import InvalidPackage
from skills_app.library.package import errors_of
from skills_app.library.scopes import BUILT_IN, LIBRARY
from skills_app.models import Skill, SkillVersion, Trust
from skills_app.queries.packages import PackageEntry
from skills_app.queries.skills import AgentSkillRow, VersionUsage

MAX_VERSION = 2**31 - 1
REASON_CHARACTERS = 2_000
SCOPES = ("own", "library", "built-in", "directory")
_QUERY_CHARACTERS = 500


class AgentSkillsQuery(StrictSerializer):
    """All skills, those of one scope, or those that are on (or off)."""

    scope = serializers.ChoiceField(choices=SCOPES, required=False)
    enabled = serializers.ChoiceField(choices=["true", "false"], required=False)


class OwnSkillBody(StrictSerializer):
    """A new skill of an agent's own. `instructions` are Markdown."""

    name = Text()
    description = Text()
    instructions = Text()


class SkillChangeBody(StrictSerializer):
    """The changes. Only an agent's own skills have texts to change; every skill has `enabled`."""

    name = Text(required=False)
    description = Text(required=False)
    instructions = Text(required=False)
    enabled = Flag(required=False)
    base_version = serializers.IntegerField(required=False, min_value=1, max_value=MAX_VERSION)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not set(attrs) - {"base_version"}:
            raise ValidationError(
                "Send what is to change: name, description, instructions, enabled."
            )
        return attrs


class UploadForm(StrictSerializer):
    """A multipart form. With `accept`, a reviewer gives agents a later version at once."""

    file = serializers.FileField(allow_empty_file=True, max_length=1_000)
    accept = serializers.ChoiceField(choices=["true", "false"], default="false")
    reason = Text(max_length=REASON_CHARACTERS, default="", allow_blank=True)


class AgentUploadForm(StrictSerializer):
    """A multipart form with a package that becomes an agent's own skill."""

    file = serializers.FileField(allow_empty_file=True, max_length=1_000)


class LibraryQuery(PageQuery):
    """The library and Vel's own skills. With a text in `q`, the best matches, without pages."""

    cursor = serializers.RegexField(r"\A[0-9]{1,18}\Z", required=False)
    q = Text(required=False, allow_blank=True, max_length=_QUERY_CHARACTERS)
    scope = serializers.ChoiceField(choices=[LIBRARY, "built-in"], required=False)
    trust = serializers.ChoiceField(choices=Trust.values, required=False)
    tag = Text(required=False, max_length=200)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.get("q", "").strip():
            attrs.pop("q", None)
        if "q" in attrs and "cursor" in attrs:
            raise ValidationError({"cursor": ["A search has no pages: ask for more with limit."]})
        return attrs


class VersionQuery(StrictSerializer):
    """Which version; by default the version that agents get, or else the latest."""

    version = serializers.IntegerField(required=False, min_value=1, max_value=MAX_VERSION)


class ReviewBody(StrictSerializer):
    """The version that the reviewer has read: the hash of its bytes, and its trust at that time."""

    content_hash = serializers.RegexField(r"\A[0-9a-f]{64}\Z")
    trust = serializers.ChoiceField(choices=Trust.values, required=False)


class QuarantineBody(StrictSerializer):
    reason = Text(max_length=REASON_CHARACTERS)


class DeleteSkillQuery(StrictSerializer):
    base_version = serializers.IntegerField(required=False, min_value=1, max_value=MAX_VERSION)


def scope_word(skill: Skill) -> str:
    """Return the scope of a skill as a word: `own`, `library`, `built-in` or `directory`."""
    if skill.scope == BUILT_IN:
        return "built-in"
    if skill.scope == LIBRARY:
        return LIBRARY
    return "own" if skill.agent_id is not None else "directory"


def show_agent_skill(row: AgentSkillRow, instructions: str, trust: str | None) -> dict[str, Any]:
    """Return a skill of an agent as JSON. `trust` is the `waiting_trust` of `show_skill`."""
    return {
        **show_skill(row.skill, trust),
        "instructions": instructions,
        "enabled": row.enabled,
        "waits": row.waits,
        "collides": row.collides,
    }


def show_skill(skill: Skill, waiting_trust: str | None) -> dict[str, Any]:
    """Return a skill as JSON, with the version that agents get.

    If no version is accepted, `version` and `content_hash` are null, `tags` is empty, `findings` is
    0, and `trust` is `waiting_trust`, the trust of the latest version.
    """
    version = skill.current
    head = version.fields if version else None
    return {
        "id": str(skill.pk),
        "name": skill.name,
        "description": skill.description,
        "scope": scope_word(skill),
        "tags": list(head.tags) if head else [],
        "trust": version.trust if version else waiting_trust,
        "version": version.number if version else None,
        "latest_version": skill.version,
        "content_hash": version.content_hash if version else None,
        "findings": len(version.findings) if version else 0,
        "created_at": show_time(skill.created_at),
        "updated_at": show_time(skill.updated_at),
    }


def show_version(version: SkillVersion, current_id: int | None) -> dict[str, Any]:
    """Return one version as JSON, without its files."""
    reviewer = version.reviewed_by
    return {
        "number": version.number,
        "is_current": version.pk == current_id,
        "trust": version.trust,
        "content_hash": version.content_hash,
        "file_count": version.file_count,
        "size_bytes": version.size_bytes,
        "findings": version.findings,
        "source": version.source,
        "origin": version.origin,
        "reason": version.reason,
        "created_by": version.created_by.get_username() if version.created_by else None,
        "created_at": show_time(version.created_at),
        "reviewed_by": reviewer.get_username() if reviewer else None,
        "reviewed_at": show_time(version.reviewed_at) if version.reviewed_at else None,
    }


def show_head(version: SkillVersion) -> dict[str, Any]:
    """Return the fields of the version's SKILL.md as JSON."""
    head = version.fields.as_json()
    head["allowed_tools"] = version.fields.allowed_tools  # null differs from an empty list
    return head


def show_package_file(entry: PackageEntry) -> dict[str, Any]:
    return {
        "path": entry.path,
        "size_bytes": entry.size_bytes,
        "executable": entry.executable,
        "sha256": entry.sha256,
    }


def problems_of(error: InvalidPackage) -> ValidationError:
    """Return the errors of a package by file path, with `file` for the package as a whole."""
    errors: dict[str, list[str]] = {}
    for problem in errors_of(error.problems):
        errors.setdefault(problem.path or "file", []).append(problem.message)
    return ValidationError(errors or {"file": [error.message]})


def show_usage(usage: VersionUsage) -> dict[str, Any]:
    """Return the use of a version as JSON."""
    return {
        "version": usage.version.number,
        "shown": usage.shown,
        "loaded": usage.loaded,
        "files_read": usage.files,
        "endings": usage.endings,
    }


def show_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

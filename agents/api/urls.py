"""Version 1 of the REST API. Include it below a prefix: `path("api/v1/", include(…))`."""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from agents.api.agents import Agents
from agents.api.approvals import Approvals, DecideApproval, OneApproval
from agents.api.base import UnknownUrl
from agents.api.events import RunEvents
from agents.api.files import Changes, FileContent, Files, Restore
from agents.api.grants import Grants, RehearsePolicy, RevokeGrant
from agents.api.memory import Memory, MemoryRevisions, OneMemoryFile, RestoreMemory
from agents.api.runs import CancelRun, OneRun, Runs
from agents.api.skill_library import (
    Library,
    OneSkill,
    QuarantineSkill,
    ReviewSkill,
    SkillExport,
    SkillFileContent,
    SkillFiles,
)
from agents.api.skills import AgentSkills, OneAgentSkill
from agents.api.usage import Usage


class OpaqueId:
    """Any id that Vel could have made; what is none reaches no database."""

    regex = "[0-9A-Za-z_-]{1,64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(OpaqueId, "opaque_id")

app_name = "api"
urlpatterns = [
    path("agents", Agents.as_view(), name="agents"),
    path("agents/<opaque_id:agent_id>/memory", Memory.as_view(), name="memory"),
    path(
        "agents/<opaque_id:agent_id>/memory/<path:path>",
        OneMemoryFile.as_view(),
        name="memory-file",
    ),
    path(
        "agents/<opaque_id:agent_id>/memory-revisions",
        MemoryRevisions.as_view(),
        name="memory-revisions",
    ),
    path(
        "agents/<opaque_id:agent_id>/memory-restore",
        RestoreMemory.as_view(),
        name="memory-restore",
    ),
    path("agents/<opaque_id:agent_id>/skills", AgentSkills.as_view(), name="agent-skills"),
    path(
        "agents/<opaque_id:agent_id>/skills/<opaque_id:skill_id>",
        OneAgentSkill.as_view(),
        name="agent-skill",
    ),
    path("skills", Library.as_view(), name="skills"),
    path("skills/<opaque_id:skill_id>", OneSkill.as_view(), name="skill"),
    path("skills/<opaque_id:skill_id>/files", SkillFiles.as_view(), name="skill-files"),
    path(
        "skills/<opaque_id:skill_id>/files/<path:path>",
        SkillFileContent.as_view(),
        name="skill-file",
    ),
    path("skills/<opaque_id:skill_id>/export", SkillExport.as_view(), name="skill-export"),
    path(
        "skills/<opaque_id:skill_id>/versions/<int:number>/review",
        ReviewSkill.as_view(),
        name="skill-review",
    ),
    path(
        "skills/<opaque_id:skill_id>/versions/<int:number>/quarantine",
        QuarantineSkill.as_view(),
        name="skill-quarantine",
    ),
    path("runs", Runs.as_view(), name="runs"),
    path("runs/<opaque_id:run_id>", OneRun.as_view(), name="run"),
    path("runs/<opaque_id:run_id>/events", RunEvents.as_view(), name="run-events"),
    path("runs/<opaque_id:run_id>/cancel", CancelRun.as_view(), name="run-cancel"),
    path("approvals", Approvals.as_view(), name="approvals"),
    path("approvals/<opaque_id:approval_id>", OneApproval.as_view(), name="approval"),
    path(
        "approvals/<opaque_id:approval_id>/decide", DecideApproval.as_view(), name="approval-decide"
    ),
    path("usage", Usage.as_view(), name="usage"),
    path("grants", Grants.as_view(), name="grants"),
    path("grants/<opaque_id:grant_id>/revoke", RevokeGrant.as_view(), name="grant-revoke"),
    path(
        "agents/<opaque_id:agent_id>/policy/rehearse",
        RehearsePolicy.as_view(),
        name="policy-rehearse",
    ),
    path("threads/<opaque_id:thread_id>/files", Files.as_view(), name="files"),
    path("threads/<opaque_id:thread_id>/files/content", FileContent.as_view(), name="file-content"),
    path("threads/<opaque_id:thread_id>/changes", Changes.as_view(), name="changes"),
    path("threads/<opaque_id:thread_id>/restore", Restore.as_view(), name="restore"),
    re_path("", UnknownUrl.as_view(), name="unknown"),
]

"""The endpoints for skills in the REST API."""

from __future__ import annotations

from django.urls import path

from agents.doors.rest.managed.coverage import RestObject
from skills_app.api.agent_skills import AgentSkills, OneAgentSkill
from skills_app.api.library import Library, OneSkill
from skills_app.api.versions import (
    QuarantineSkill,
    ReviewSkill,
    SkillExport,
    SkillFileContent,
    SkillFiles,
)
from skills_app.models import Skill

OBJECTS = [
    RestObject(
        model=Skill,
        path="skills",
        list=("list_skills", "everybody; more for people who manage or review the library"),
        read=("get_skill", "as the list"),
        create=("import_skill", "people who manage the library"),
        delete=("delete_skill", "people who manage the library"),
        further={
            "review_skill": "people who review skills",
            "quarantine_skill": "people who review skills",
            "create_agent_skill": "people who may change the skills of the agent",
        },
    )
]

urlpatterns = [
    path("agents/<agent_name:agent_id>/skills", AgentSkills.as_view(), name="agent-skills"),
    path(
        "agents/<agent_name:agent_id>/skills/<opaque_id:skill_id>",
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
]

"""The pages. Include them at the root: `path("", include("agents.web.urls"))`."""

from __future__ import annotations

from django.urls import path

from agents.web import (
    approvals,
    changes,
    deciding,
    demo,
    files,
    history,
    home,
    knowledge,
    run,
    skill_library,
    skill_page,
    skills,
)

app_name = "web"
urlpatterns = [
    path("", home.home, name="home"),
    path("demo/", demo.start_demo, name="demo"),
    path("approvals/", approvals.queue, name="approvals"),
    path("approvals/live/", approvals.live, name="approvals-live"),
    path("approvals/decide/", deciding.decide_several, name="approvals-decide"),
    path("approvals/<slug:request_id>/", approvals.one, name="approval"),
    path("approvals/<slug:request_id>/decide/", deciding.decide_one, name="approval-decide"),
    path("agents/<slug:slug>/knowledge/", knowledge.knowledge, name="knowledge"),
    path("agents/<slug:slug>/skills/", skills.skills, name="skills"),
    path("skills/", skill_library.library, name="skill-library"),
    path("skills/<int:skill_id>/", skill_page.skill, name="skill"),
    path("skills/<int:skill_id>/export/", skill_page.skill_export, name="skill-export"),
    path("skills/<int:skill_id>/files/<path:path>", skill_page.skill_file, name="skill-file"),
    path("runs/", history.history, name="history"),
    path("runs/<slug:run_id>/", run.run_page, name="run"),
    path("runs/<slug:run_id>/summary/", run.run_summary, name="run-summary"),
    path("runs/<slug:run_id>/cancel/", run.cancel, name="run-cancel"),
    path("runs/<slug:run_id>/messages/", run.send_message, name="run-messages"),
    path("runs/<slug:run_id>/changes/", changes.changes, name="run-changes"),
    path("runs/<slug:run_id>/files/<path:path>", files.download, name="run-file"),
]

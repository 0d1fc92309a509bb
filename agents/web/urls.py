"""The pages. Include them at the root: `path("", include("agents.web.urls"))`."""

from __future__ import annotations

from django.urls import URLPattern, path

from agents.kernel.features import collect
from agents.web import (
    app_manifest,
    changes,
    composer,
    erase,
    files,
    first_steps,
    history,
    home,
    language,
    profile,
    run,
    said,
    theme,
    usage,
)

app_name = "web"
urlpatterns: list[URLPattern] = [
    *(pattern for _, pattern in collect("pages", "urlpatterns", skip_broken=True)),
    path("app.webmanifest", app_manifest.app_manifest, name="app-manifest"),
    path("", home.home, name="home"),
    path("first-steps/hide/", first_steps.hide, name="first-steps-hide"),
    path("demo/", home.start_demo, name="demo"),
    path("agents/new/", home.new_agent, name="new-agent"),
    path("profile/", profile.profile, name="profile"),
    path("profile/password/", profile.password, name="password"),
    path("usage/", usage.usage, name="usage"),
    path("theme/", theme.theme, name="theme"),
    path("language/", language.language, name="language"),
    path("texts.js", language.texts, name="texts"),
    path("runs/", history.history, name="history"),
    path("runs/<slug:run_id>/", run.run_page, name="run"),
    path("runs/<slug:run_id>/summary/", run.run_summary, name="run-summary"),
    path("runs/<slug:run_id>/cancel/", run.cancel, name="run-cancel"),
    path("runs/<slug:run_id>/erase/", erase.erase, name="run-erase"),
    path("runs/<slug:run_id>/messages/", composer.send_message, name="run-messages"),
    path("runs/<slug:run_id>/retry/", composer.retry, name="run-retry"),
    path("runs/<slug:run_id>/names/", composer.file_names, name="run-file-names"),
    path("runs/<slug:run_id>/changes/", changes.changes, name="run-changes"),
    path("runs/<slug:run_id>/said/", said.said, name="run-said"),
    path("runs/<slug:run_id>/call/", said.whole_call, name="run-call"),
    path("runs/<slug:run_id>/files/<path:path>", files.download, name="run-file"),
    path("runs/<slug:run_id>/pictures/<path:path>", files.picture, name="run-picture"),
]

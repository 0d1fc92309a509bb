"""docs/reference/permissions.md: the permissions of users, and the scopes of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.test import RequestFactory

from agents.models import TokenScope
from docs_tools.markdown import plain

ROOT = Path(__file__).parents[1]
VEL = ("agents", "memory", "skills_app")
_INTRO = """\
<!-- Generated from the models by `make reference`: do not edit. -->

# Permissions

Vel uses Django's permissions. Give them to groups or users in the admin or over
[REST](rest-objects.md). A superuser has all of them.
[The admin](../guides/admin.md#who-may-do-what) explains the effect of each permission, and the
rights of people without permissions, such as the owner of an agent.
"""
_STANDARD = """\
## Permissions of objects

Each ✓ is a permission that Vel checks in the admin, and in the REST endpoints that correspond to
the admin. Its name is `APP.ACTION_OBJECT`, such as `agents.view_run`. On the pages and over REST,
you need no permission for your own runs, threads and requests.

In the admin, the view permissions for runs, threads and approval requests show your own; together
with `agents.view_all_runs`, they show those of all users. For some objects, *change* is an action:
cancel and resume a run, revoke a token, send a notification again, manage a machine. The
[glossary](../glossary.md) explains most objects; `serverprocess` stands for the
[status page](../operations/monitoring.md#the-status-page). Users and groups have the permissions
of Django, such as `auth.view_user`.
"""
_SCOPES = """\
## Scopes of tokens

A token can do what its user may do, limited to its scopes. No scope includes another one: a
program that starts runs and reads their answers needs `run` and `read`. To create a token, use
`vel token create USER --scope NAME`. The [REST API](rest-api.md) names the scope of each request.
"""
_ACTIONS = ("view", "add", "change", "delete")


def page() -> str:
    """Return the page."""
    lines = [_INTRO, "## Special permissions\n", *_special(), _STANDARD, *_standard()]
    lines += [_SCOPES, "| scope | what the token may do |", "|---|---|"]
    lines += [f"| `{scope.value}` | {scope.label} |" for scope in TokenScope]
    return "\n".join(lines) + "\n"


def _models() -> list[type[Model]]:
    """Return the models of Vel, without those of apps that a project adds."""
    found = [model for model in apps.get_models() if model.__module__.split(".")[0] in VEL]
    return sorted(found, key=lambda model: (model._meta.app_label, str(model._meta.model_name)))


def _in_admin(model: type[Model]) -> set[str]:
    """Return the actions that the admin offers to a superuser."""
    if not admin.site.is_registered(model):
        return set()
    page, request = admin.site.get_model_admin(model), RequestFactory().get("/")
    request.user = get_user_model()(is_active=True, is_staff=True, is_superuser=True)
    return {action for action, allowed in page.get_model_perms(request).items() if allowed}


def _in_code() -> set[str]:
    """Return the permissions that the code asks for by name."""
    found = set[str]()
    for package in (*VEL, "velproject"):
        for path in (ROOT / package).rglob("*.py"):
            found |= {*re.findall(r"\b\w+\.(?:view|add|change|delete)_\w+", path.read_text())}
    return found


def _special() -> Iterator[str]:
    yield "| permission | what it allows |\n|---|---|"
    for model in _models():
        for codename, name in model._meta.permissions:
            yield f"| `{model._meta.app_label}.{codename}` | {plain(str(name))} |"
    yield ""


def _standard() -> Iterator[str]:
    yield f"| app | object | {' | '.join(_ACTIONS)} |"
    yield f"|---|---|{'---|' * len(_ACTIONS)}"
    in_code = _in_code()
    for model in _models():
        app, name, shown = model._meta.app_label, model._meta.model_name, _in_admin(model)
        uses = [each in shown or f"{app}.{each}_{name}" in in_code for each in _ACTIONS]
        if any(uses):
            yield f"| `{app}` | `{name}` | {' | '.join('✓' if used else '' for used in uses)} |"
    yield ""

"""Django system checks of the settings of a project that embeds Vel.

Each message names the missing part and a solution. Doors that are not mounted are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import PermissionsMixin
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connections, router
from django.shortcuts import resolve_url
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.urls import (
    NoReverseMatch,
    Resolver404,
    get_resolver,
    get_script_prefix,
    resolve,
    reverse,
)
from django.utils.module_loading import import_string

from agents.kernel.features import features
from agents.request_origin import request_origin

_DOCS = "See docs/guides/embedding.md."
_SESSION = "django.contrib.sessions.middleware.SessionMiddleware"
_AUTH = "django.contrib.auth.middleware.AuthenticationMiddleware"
_CSRF = "django.middleware.csrf.CsrfViewMiddleware"
_MESSAGES = "django.contrib.messages.middleware.MessageMiddleware"
_ORIGIN = f"{request_origin.__module__}.{request_origin.__name__}"


@register()
def check_project(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the requirements of every project that runs agents."""
    return [*_users(), *_times(), *_databases(), *_queue()]


@register()
def check_doors(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the requirements of the API and the pages, if they are mounted."""
    if not getattr(settings, "ROOT_URLCONF", ""):
        return []
    has_api, has_pages = _is_mounted("api:runs"), _is_mounted("web:home")
    found = [*_namespaces()]
    if has_api or has_pages:
        found += [*_middleware(has_pages), *_sessions()]
    if has_pages:
        found += [*_templates("web/base.html", "the pages"), *_login()]
    if apps.is_installed("django.contrib.admin"):
        found += _templates("admin/agents/agent/try.html", "the admin")
    return found


def _users() -> Iterator[CheckMessage]:
    user = get_user_model()
    if not issubclass(user, PermissionsMixin):
        yield Error(
            f"The user model {settings.AUTH_USER_MODEL} has no groups and permissions. Agents "
            "cannot be shared, and approvers cannot be named.",
            hint=f"Let it inherit from django.contrib.auth.models.PermissionsMixin. {_DOCS}",
            id="vel.E021",
        )


def _times() -> Iterator[CheckMessage]:
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is off: leases and expiries are compared with the database's clock.",
            hint=f"Set USE_TZ = True. TIME_ZONE may be any. {_DOCS}",
            id="vel.E022",
        )


def _databases() -> Iterator[CheckMessage]:
    of_features = [config.label for config in features()]
    labels = dict.fromkeys(["agents", "django_q", *of_features])
    of_vel = (model for label in labels for model in apps.get_app_config(label).get_models())
    for model in (get_user_model(), *of_vel):
        elsewhere = {router.db_for_write(model), router.db_for_read(model)} - {"default"}
        if elsewhere:
            yield Error(
                f"A database router sends {model._meta.label} to {min(elsewhere)!r}: Vel's "
                "transactions are in 'default'.",
                hint="Let DATABASE_ROUTERS leave the apps agents and django_q, "
                f"those of features, and the user model, in 'default'. {_DOCS}",
                id="vel.E023",
            )
            break
    default = connections["default"]
    options = default.settings_dict.get("OPTIONS") or {}
    if default.vendor == "sqlite" and options.get("transaction_mode") != "IMMEDIATE":
        yield Warning(
            "SQLite transactions do not start as writers: under load some fail with “database is "
            "locked”.",
            hint='DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": '
            '20, "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"}',
            id="vel.W020",
        )


def _queue() -> Iterator[CheckMessage]:
    given: dict[str, Any] = getattr(settings, "Q_CLUSTER", {})
    if given.get("sync"):
        yield Error(
            'Q_CLUSTER["sync"] is on: a run would be driven within the transaction that starts it.',
            hint=f'Take "sync" out of Q_CLUSTER and start `manage.py qcluster`. {_DOCS}',
            id="vel.E024",
        )
    if given.get("orm") != "default":
        yield Warning(
            "django-q2 does not keep its tasks in the database 'default': one that is lost, or "
            "comes before its run is committed, is found again only some seconds later.",
            hint=f'Q_CLUSTER = {{"orm": "default", …}}. {_DOCS}',
            id="vel.W021",
        )


def _is_mounted(name: str) -> bool:
    try:
        return resolve(reverse(name)).func.__module__.startswith("agents.")
    except (NoReverseMatch, LookupError):
        return False


def _namespaces() -> Iterator[CheckMessage]:
    """Check the namespaces `api:` and `web:`, which links use."""
    found: dict[str, set[bool]] = {}
    for app_name, names, path in _namespaces_in(get_resolver().url_patterns):
        if app_name in ("api", "web"):
            found.setdefault(app_name, set()).add(path.startswith("agents."))
            if path.startswith("agents.") and names != [app_name]:
                yield Error(
                    f"{path} is included as the namespace {':'.join(names)!r}: Vel's links, which "
                    f"name {app_name!r}, lead nowhere.",
                    hint=f'path("…/", include("{path}")) at the top of ROOT_URLCONF. {_DOCS}',
                    id="vel.E025",
                )
    for app_name, whose in found.items():
        if len(whose) > 1:
            yield Error(
                f"Two sets of URLs have the app_name {app_name!r}, Vel's and another: links of one "
                "would lead to the other.",
                hint=f"Give your own another app_name than {app_name!r}. {_DOCS}",
                id="vel.E025",
            )


def _namespaces_in(
    patterns: Any, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, list[str], str]]:
    """Yield (app_name, the namespaces down to it, the module) of all includes."""
    for item in patterns:
        inner = getattr(item, "url_patterns", None)
        if inner is None:
            continue
        names = above
        if item.namespace:
            names = (*above, item.namespace)
            module = getattr(item.urlconf_name, "__name__", "")
            yield item.app_name or "", list(names), module
        yield from _namespaces_in(inner, names)


def _middleware(has_pages: bool) -> Iterator[CheckMessage]:
    there = list(settings.MIDDLEWARE)
    needed = [_SESSION, _CSRF, _AUTH, *([_MESSAGES] if has_pages else []), _ORIGIN]
    for name in needed:
        if name not in there and not any(_is_a(other, name) for other in there):
            yield Error(
                f"MIDDLEWARE lacks {name}: {_WHY[name]}.",
                hint=f"Add it, behind {_AUTH}. {_DOCS}" if name == _ORIGIN else f"Add it. {_DOCS}",
                id="vel.E026",
            )
    if _ORIGIN in there and _AUTH in there and there.index(_ORIGIN) < there.index(_AUTH):
        yield Error(
            f"MIDDLEWARE has {_ORIGIN} before {_AUTH}: the audit log would not know who acts.",
            hint="Move it behind.",
            id="vel.E026",
        )


_WHY = {
    _SESSION: "users cannot sign in",
    _CSRF: "other sites could send forms in the name of a signed-in user",
    _AUTH: "users cannot sign in",
    _MESSAGES: "the pages could not show the results of actions",
    _ORIGIN: "the audit log would not know the user and the address of requests",
}


def _is_a(path: str, wanted: str) -> bool:
    """Return whether a project's middleware is a subclass of the required one."""
    try:
        own, base = import_string(path), import_string(wanted)
    except ImportError:
        return False  # reported by Django
    return isinstance(own, type) and isinstance(base, type) and issubclass(own, base)


def _sessions() -> Iterator[CheckMessage]:
    if settings.CSRF_USE_SESSIONS:
        yield Warning(
            "CSRF_USE_SESSIONS is on: frames on sockets with a session are refused, since their "
            "CSRF token is looked for in the cookie. Tokens of programs work.",
            hint="CSRF_USE_SESSIONS = False",
            id="vel.W022",
        )


def _login() -> Iterator[CheckMessage]:
    problem = (
        f"LOGIN_URL {str(settings.LOGIN_URL)!r} leads nowhere: the pages send people there who "
        "have not signed in."
    )
    hint = f"Name your own login page, or one at agents.web.login.login. {_DOCS}"
    try:
        place = urlsplit(resolve_url(settings.LOGIN_URL))
    except NoReverseMatch:
        yield Error(problem, hint=hint, id="vel.E027")
        return
    # Another server can answer this path, so it is no error.
    if not place.netloc and not _is_answered(place.path.removeprefix(get_script_prefix()[:-1])):
        yield Warning(problem, hint=hint, id="vel.W023")


def _is_answered(path: str) -> bool:
    """Return whether the project has a page at `path`, or at `path` with a slash."""
    for spelling in (path, f"{path}/"):
        try:
            resolve(spelling)
        except Resolver404:
            continue
        return True
    return False


def _templates(name: str, whose: str) -> Iterator[CheckMessage]:
    try:
        get_template(name)
    except TemplateDoesNotExist:
        yield Error(
            f"The template {name} is not found: {whose} cannot be shown.",
            hint='Add agents.page_templates.PAGE_TEMPLATES at the end of TEMPLATES[0]["DIRS"]. '
            + _DOCS,
            id="vel.E028",
        )

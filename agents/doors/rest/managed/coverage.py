"""Which operations of the API list, read, create, change and delete the objects of the admin.

`OBJECTS` of a module `api` has a `Managed` or a `RestObject` for each admin class. A test compares
them with the classes that are registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model

from agents.doors.rest.managed.objects import Managed
from agents.kernel.features import added_entries, collect
from agents.models import TokenScope

STAFF = "staff with "
"""The prefix of the permission of an object of the admin."""


@dataclass(frozen=True, kw_only=True)
class RestObject:
    """The operations on the objects of one model: the name of each, and who may use it."""

    model: type[Model] | None
    """None: another entry is about the admin class of its rows, or they are no rows."""
    path: str
    list: tuple[str, str] | None = None
    read: tuple[str, str] | None = None
    create: tuple[str, str] | None = None
    change: tuple[str, str] | None = None
    delete: tuple[str, str] | None = None
    further: Mapping[str, str] = field(default_factory=dict)
    """Further operations, each with who may use it."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """The operation for each action of the admin class."""
    scope: str = TokenScope.MANAGE.value
    """The scope of tokens for operations that change something."""


VERBS = ("list", "read", "create", "change", "delete")


def rest_object(managed: Managed) -> RestObject:
    """Return the operations of a `Managed`."""
    meta = managed.model._meta

    def who(verb: str) -> str:
        return f"{STAFF}`{meta.app_label}.{verb}_{meta.model_name}`"

    here = {
        "list": (f"list_{managed.plural}", "view", True),
        "read": (f"get_{managed.name}", "view", True),
        "create": (f"create_{managed.name}", "add", managed.creates),
        "change": (f"change_{managed.name}", "change", managed.changes),
        "delete": (f"delete_{managed.name}", "delete", managed.deletes),
    }
    return RestObject(
        model=managed.model,
        path=managed.rows,
        **{
            verb: (managed.elsewhere.get(verb, name), managed.who.get(verb, who(word)))
            for verb, (name, word, is_here) in here.items()
            if is_here or verb in managed.elsewhere
        },
        further={
            **{
                _operation(managed, action.name): action.who or who("change")
                for action in managed.actions
            },
            **managed.further,
        },
        actions={
            action.admin or action.name: _operation(managed, action.name)
            for action in managed.actions
        },
        scope=managed.scope.value,
    )


def _operation(managed: Managed, action: str) -> str:
    return f"{action.replace('-', '_')}_{managed.name}"


def rest_objects(own: list[Any]) -> list[RestObject]:
    """Return the objects of the installed features and apps, and `own`, sorted by path."""
    found = [
        *own,
        *added_entries("api", "OBJECTS"),
        *(each for _, each in collect("api", "OBJECTS")),
    ]
    shown = [rest_object(each) if isinstance(each, Managed) else each for each in found]
    return sorted(shown, key=lambda each: each.path)

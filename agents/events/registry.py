"""Find the declared event types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import module_has_submodule

from agents.events import catalogue
from agents.events.event import Event, InvalidEvent


@cache
def event_modules() -> tuple[ModuleType, ...]:
    """Return the modules with a list `EVENTS`: of the catalogue, and `events` of installed apps.

    Raises `ImproperlyConfigured` for a module that cannot be imported.
    """
    names = [f"{catalogue.__name__}.{found.name}" for found in iter_modules(catalogue.__path__)]
    names += [
        f"{app.name}.events"
        for app in apps.get_app_configs()
        if app.module is not None and module_has_submodule(app.module, "events")
    ]
    modules = [_imported(name) for name in names]
    return tuple(module for module in modules if hasattr(module, "EVENTS"))


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:
        raise ImproperlyConfigured(f"{name} cannot be imported: {error!r}.") from error


@cache
def event_types() -> Mapping[str, type[Event]]:
    """Return the classes of all events by the name of their type. Raises `ImproperlyConfigured`."""
    found: dict[str, type[Event]] = {}
    for module in event_modules():
        for declared in module.EVENTS:
            if (problem := _problem(declared)) is not None:
                raise ImproperlyConfigured(f"{module.__name__}.EVENTS: {problem}")
            if (other := found.setdefault(declared.type, declared)) is not declared:
                raise ImproperlyConfigured(
                    f"{module.__name__}.EVENTS: the type {declared.type!r} is also declared in "
                    f"{other.__module__}. Rename one of them."
                )
    return found


def _problem(declared: object) -> str | None:
    if not (isinstance(declared, type) and issubclass(declared, Event)):
        return f"{declared!r} is not a subclass of agents.events.event.Event."
    if not isinstance(vars(declared).get("type"), str):
        return f"{declared.__name__} has no type: give it type: ClassVar[str] = 'subject.happened'."
    if not is_dataclass(declared) or "__dataclass_fields__" not in vars(declared):
        return f"{declared.__name__} is not a dataclass: add @dataclass(frozen=True, kw_only=True)."
    return None


@cache
def declared_classes() -> Collection[type]:
    """Return the classes whose instances can be written."""
    return frozenset(event_types().values())


def check_declared(event: object) -> None:
    """Raise `InvalidEvent` unless `event` is of a declared type."""
    if type(event) not in declared_classes():
        raise InvalidEvent(
            f"{event!r} is not an event of a declared type. Write an instance of a class that is "
            "in the list EVENTS of a module of agents.events.catalogue, or of the module events of "
            "an installed app."
        )

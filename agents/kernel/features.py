"""Find features and their extensions.

A feature is a Django app whose config is a `FeatureConfig`. Its extensions are lists in modules
with fixed names, for example `middleware.MIDDLEWARE` or `api.urlpatterns`. The part of Vel that
uses a list reads it with `collect`. No other part of Vel knows the features.

Features list periodic work for workers in their `jobs.JOBS`, and parts of a worker with their own
threads in their `jobs.PARTS`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

logger = logging.getLogger("agents.features")

_added: dict[str, list[str]] = {}
_absent: set[str] = set()
"""The modules that features do not have. Python would search all directories for them each time."""


class FeatureConfig(AppConfig):
    """The app config of a feature, in its `apps.py`."""

    default = False
    """Django must use the subclass in `apps.py`, not this class, which is imported there too."""
    default_auto_field = "django.db.models.BigAutoField"
    declares_settings = True
    """The feature's module `settings` may list classes of `agents.kernel.settings`."""
    order: ClassVar[int] = 1000
    """The position of the feature's tools and of its segment of the prompt.

    Lower numbers come first, equal ones by label.
    """
    middleware_order: ClassVar[Mapping[str, int]] = {}
    """The places of the hooks of the feature's middleware: see `agents.kernel.chain`."""
    requires: ClassVar[tuple[str, ...]] = ()
    """The labels of the apps that the feature needs."""
    commands: ClassVar[Mapping[str, str]] = {}
    """The feature's commands of `vel`, each with one line of help, as literal texts.

    The code of the commands is in the module `cli`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "default" not in vars(cls):
            cls.default = True

    def ready(self) -> None:
        """Import the feature's module `checks`, if it exists, to register its system checks."""
        super().ready()
        _import(self, "checks")


def features() -> list[FeatureConfig]:
    """Return the installed features in order. Django's apps must be loaded."""
    found = [config for config in apps.get_app_configs() if isinstance(config, FeatureConfig)]
    return sorted(found, key=lambda config: (config.order, config.label))


def feature_modules(
    name: str, *, skip_broken: bool = False
) -> Iterator[tuple[FeatureConfig, ModuleType]]:
    """Import the module `name` of each feature that has one, and yield (feature, module).

    A module that cannot be imported raises `ImproperlyConfigured` with the name of the feature.
    With `skip_broken` such a module is logged and skipped, so that other pages remain available. A
    system check reports it as an error, too.
    """
    for config in features():
        try:
            module = _import(config, name)
        except ImproperlyConfigured:
            if not skip_broken:
                raise
            logger.exception("The feature %s is left out here.", config.label)
            continue
        if module is not None:
            yield config, module


def collect(
    module: str, attribute: str, *, skip_broken: bool = False
) -> list[tuple[FeatureConfig, Any]]:
    """Return (feature, entry) for each entry of the list `attribute` in the features' `module`.

    `skip_broken` and the exceptions are those of `feature_modules`.
    """
    return [
        (config, entry)
        for config, found in feature_modules(module, skip_broken=skip_broken)
        for entry in getattr(found, attribute, ())
    ]


def add_module(name: str, path: str) -> None:
    """Let `entries` read the module `path` as the module `name` of an app that is not a feature.

    Call this function in the app's `ready`.
    """
    if path not in _added.setdefault(name, []):
        _added[name].append(path)


def entries(module: str, attribute: str) -> list[Any]:
    """Return the entries of the list `attribute` in added modules, then those of the features."""
    return added_entries(module, attribute) + [entry for _, entry in collect(module, attribute)]


def added_entries(module: str, attribute: str) -> list[Any]:
    """Return the entries of the list `attribute` in added modules only."""
    return [
        entry
        for path in _added.get(module, ())
        for entry in getattr(import_module(path), attribute, ())
    ]


def _import(config: FeatureConfig, name: str) -> ModuleType | None:
    path = f"{config.name}.{name}"
    if path in _absent:
        return None
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name == path:
            _absent.add(path)
            return None
        raise _broken(config, path, error) from error
    except Exception as error:
        raise _broken(config, path, error) from error


def _broken(config: FeatureConfig, path: str, error: Exception) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"The feature {config.label} cannot be used: importing {path} failed with "
        f"{type(error).__name__}: {error}. Repair it, or remove {config.name} from "
        "INSTALLED_APPS."
    )


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "INSTALLED_APPS":
        _absent.clear()


setting_changed.connect(_forget, dispatch_uid="agents.kernel.features")


@dataclass(frozen=True, slots=True)
class Preload:
    """Modules that all workers need, or the workers of some installations.

    A cluster imports them once, before it forks its workers, which share the memory. A feature
    lists instances in its `preload.PRELOAD`.
    """

    modules: tuple[str, ...]
    needed: Callable[[], bool] | None = None
    """Returns whether this installation needs the modules.

    It may query the database. None: always.
    """


@dataclass(frozen=True, slots=True)
class Job:
    """Periodic work of every worker, each `every` seconds.

    `run` is called in a transaction, on the only thread of the worker that uses the database, so it
    must not block. It does one piece of work and returns whether there may be more. One pass does
    at most `parts` pieces. Several workers call `run` at the same time, so it must lock the rows
    that it changes. Work that only one process may do starts with
    `agents.services.background_jobs.take_background_job(name, seconds)`. After an error, `run` is
    called again, with increasing pauses up to five minutes; after an error of the database without
    these pauses.

    `name` is the kind of work for the log: "schedules".
    """

    name: str
    run: Callable[[], object]
    every: float = 1.0
    parts: int = 1_000_000
    workers_only: bool = True
    """Whether only workers do this work, not the process that executes the run of one command."""


def feature_jobs() -> list[Job]:
    """Return the jobs of the installed features."""
    return [job for _, job in collect("jobs", "JOBS")]


class WorkerPart:
    """The base class of parts with their own threads. Each worker has one instance of each class.

    Use it for work that blocks, for example for requests to other servers: a `Job` would block the
    worker's runs.
    """

    finds: ClassVar[str]
    """The kind of work for the log: "notifications"."""

    def look(self) -> None:
        """Start the work that is due. This method reads rows and must not block.

        Workers call it each second, in a transaction. The process of a single command never calls
        it.
        """

    def close(self) -> None:
        """Stop accepting work, and return immediately."""

    def join(self) -> None:
        """Wait for the work in progress, some seconds at most. Called after `close`."""


def feature_parts() -> list[WorkerPart]:
    """Create and return the parts of the installed features for one worker."""
    return [part() for _, part in collect("jobs", "PARTS")]


AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Integration:
    """A service that an agent's definition may name. `label` is the name for people."""

    name: str
    label: str


_BUILDER = Integration(AGENTS, "Vel: it builds agents, each approved first")


def integrations() -> tuple[Integration, ...]:
    """Return the services of all features (`options.INTEGRATIONS`), and Vel's agent builder."""
    return (*(entry for _, entry in collect("options", "INTEGRATIONS")), _BUILDER)

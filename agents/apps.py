from importlib import import_module

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import pre_migrate

from agents.kernel import features
from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    # They require loaded apps. Only workers need `tasks`: the engine takes 0.5 s.
    from django_q import signals

    from agents import tasks
    from agents.doors import database_schema

_NEEDED = (
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_q",
)


class AgentsConfig(AppConfig):
    name = "agents"
    declares_settings = True
    verbose_name = "Agents"
    # As in the migrations, independent of the project's default.
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        # Before the models are imported, because Django's errors would name one of Vel's modules.
        missing = [name for name in _NEEDED if not apps.is_installed(name)]
        if missing:
            raise ImproperlyConfigured(
                f"INSTALLED_APPS lacks {', '.join(missing)}, which Vel's app agents needs: add "
                f"{'it' if len(missing) == 1 else 'them'} and migrate; see "
                "docs/guides/embedding.md (vel.E020)."
            )
        super().import_models()

    def ready(self) -> None:
        import_module("agents.checks")  # they register themselves
        # Runs that wait for people or subagents are still part of this app.
        features.add_module("row_hooks", "agents.services.row_hooks")
        features.add_module("definition_checks", "agents.middleware.definition_checks")
        features.add_module("notices", "agents.services.approvals.notices")
        pre_migrate.connect(_refuse_development_database, sender=self)
        signals.post_spawn.connect(_start_worker, dispatch_uid="agents.tasks")


def _start_worker(**kwargs: object) -> None:
    """Look for runs as soon as a worker process exists. This signal is django-q2's only hook."""
    tasks.process_worker()


def _refuse_development_database(using: str, **kwargs: object) -> None:
    """Stop `migrate` before it changes anything, also in a project that embeds Vel."""
    database_schema.refuse_development_database(using)

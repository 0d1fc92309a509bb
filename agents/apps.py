from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import pre_migrate

_NEEDED = (
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_q",
)


class AgentsConfig(AppConfig):
    name = "agents"
    declares_settings = True
    verbose_name = "Agents"
    # As in the migrations, whatever the project has for its own models.
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        # Before any model is made: Django's own errors would name one of Vel's modules instead.
        missing = [name for name in _NEEDED if not apps.is_installed(name)]
        if missing:
            raise ImproperlyConfigured(
                f"INSTALLED_APPS lacks {', '.join(missing)}, which Vel's app agents needs: add "
                f"{'it' if len(missing) == 1 else 'them'} and migrate; see docs/embedding.md "
                "(vel.E020)."
            )
        super().import_models()

    def ready(self) -> None:
        # Checks register themselves; Django wants that once the apps are loaded.
        from django_q.signals import post_spawn  # noqa: PLC0415  # needs loaded apps

        from agents import checks  # noqa: F401, PLC0415

        pre_migrate.connect(_refuse_development_database, sender=self)
        post_spawn.connect(_start_worker, dispatch_uid="agents.tasks")


def _start_worker(**kwargs: object) -> None:
    """Begin to look for runs as soon as a worker process exists: q2's only hook for that."""
    from agents.tasks import process_worker  # noqa: PLC0415  # only workers need the engine

    process_worker()


def _refuse_development_database(using: str, **kwargs: object) -> None:
    """Stop `migrate` before it changes anything, also in a project that embeds Vel."""
    from agents.doors.database_schema import refuse_development_database  # noqa: PLC0415

    refuse_development_database(using)

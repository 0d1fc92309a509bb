from importlib import import_module

from django.apps import AppConfig


class VelProjectConfig(AppConfig):
    name = "velproject"
    verbose_name = "Vel"

    def ready(self) -> None:
        # The checks register themselves at import.
        for name in ("environment", "exposure", "machines", "watching"):
            import_module(f"velproject.checks.{name}")

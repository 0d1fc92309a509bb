from importlib import import_module

from django.apps import AppConfig

from agents.kernel.features import add_module
from velproject.row_names import translate_row_names


class VelProjectConfig(AppConfig):
    name = "velproject"
    verbose_name = "Vel"

    def ready(self) -> None:
        add_module("api", "velproject.api")
        translate_row_names()
        import_module("velproject.web.sign_ins")  # it connects its receivers
        # The checks register themselves when this imports them.
        for name in ("environment", "exposure", "machines", "watching"):
            import_module(f"velproject.checks.{name}")

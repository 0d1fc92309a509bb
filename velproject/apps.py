from django.apps import AppConfig


class VelProjectConfig(AppConfig):
    name = "velproject"
    verbose_name = "Vel"

    def ready(self) -> None:
        # Checks register themselves; Django wants that once the apps are loaded.
        from velproject.checks import (  # noqa: F401, PLC0415
            environment,
            exposure,
            machines,
            watching,
        )

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Agents"

    def ready(self) -> None:
        from django_q.signals import post_spawn  # noqa: PLC0415  # needs loaded apps

        post_spawn.connect(_start_host, dispatch_uid="agents.tasks")


def _start_host(**kwargs: object) -> None:
    """Begin to look for runs as soon as a worker process exists: q2's only hook for that."""
    from agents.tasks import process_host  # noqa: PLC0415  # only workers need the engine

    process_host()

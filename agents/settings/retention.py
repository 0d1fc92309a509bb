"""How long things are kept: docs/operations/retention.md."""

from typing import Annotated

from agents.kernel.settings import About, Days, FeatureSettings


class RetentionSettings(FeatureSettings):
    """Retention

    `vel prune --apply` deletes older data ([retention](../operations/retention.md)).
    """

    KEEP_THREADS: Days = 0
    """Threads without activity. 0: for ever."""
    KEEP_TOKENS: Days = 90
    """API tokens that have expired or were revoked. 0: for ever."""
    KEEP_FAILED_TASKS: Days = 30
    """Rows of the task queue about tasks that failed. 0: for ever."""
    KEEP_AUDIT: Days = 0
    """Entries of the audit log. 0: for ever."""
    PRUNE_HOURS: Annotated[int, About(unit="hours", at_least=0)] = 0
    """How often workers prune automatically. 0: never."""
    WORKSPACE_RETENTION_DAYS: Days = 90
    """`vel workspaces prune --apply` deletes the files of threads without activity for so long."""

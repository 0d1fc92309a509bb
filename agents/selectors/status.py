"""Recent errors for the operators' status page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from agents.ids import first_id_at
from agents.kernel.features import collect
from agents.models import Run
from agents.states import RunStatus
from agents.telemetry.spans import short

LOOKED_BACK = timedelta(days=7)
"""Runs that were created earlier are ignored."""
MOST = 1_000


@dataclass(slots=True)
class ModelErrors:
    """Runs that failed because of one provider. `last` is the latest message."""

    provider: str
    runs: int
    codes: dict[str, int]
    last: str
    at: datetime


def model_errors(since: timedelta = timedelta(hours=1)) -> list[ModelErrors]:
    """Return the runs that failed because of their model in the time `since`, by provider.

    The provider with the most runs comes first. At most `MOST` runs are counted, without those that
    were created more than `LOOKED_BACK` ago.
    """
    now = timezone.now()
    failed = (
        Run.objects.filter(
            pk__gte=first_id_at(now - LOOKED_BACK),
            status=RunStatus.FAILED,
            error_code__startswith="model_",
            ended_at__gte=now - since,
        )
        .select_related("agent_version")
        .order_by("-ended_at")[:MOST]
    )
    found: dict[str, ModelErrors] = {}
    for run in failed:
        provider = str(run.spec.get("provider", ""))
        assert run.ended_at is not None
        row = found.setdefault(
            provider, ModelErrors(provider, 0, {}, short(run.error_message), run.ended_at)
        )
        code = run.error_code.removeprefix("model_")
        row.runs += 1
        row.codes[code] = row.codes.get(code, 0) + 1
    return sorted(found.values(), key=lambda row: (-row.runs, row.provider))


@dataclass(frozen=True, slots=True)
class StatusSection:
    """A box of the status page, returned by a function in a feature's `status.SECTIONS`."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """Pairs of label and value."""
    note: str = ""


def feature_sections() -> list[StatusSection]:
    """Return the sections of the installed features."""
    return [section() for _, section in collect("status", "SECTIONS", skip_broken=True)]

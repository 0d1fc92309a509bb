"""Make a restored database safe to start: its runs and triggers must not repeat an effect.

The work of a run after the backup is unknown. Runs that were working therefore wait for a person,
and their models learn that open calls may have happened. No work starts without a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django_q.models import OrmQ

from agents.kernel.features import collect
from agents.kernel.triggers import trigger_kinds
from agents.models import (
    RESTORED,
    ApiToken,
    ApprovalRequest,
    Effect,
    EndedRun,
    Run,
    RunClock,
    ServerProcess,
    ToolCall,
)
from agents.services.audit import record
from agents.states import ENDED_RUNS, ApprovalStatus, RunStatus, ToolCallStatus

_PART = 500


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The numbers of rows that wait for a person or have ended."""

    runs: int
    triggers: int
    sessions: int
    tokens: int


@transaction.atomic
def make_safe(backup: str, made_at: str, *, revoke_tokens: bool) -> Reviewed:
    """Make the default database safe to start, in one transaction with an audit entry.

    Args:
        backup: The name of the backup.
        made_at: When it was made, as text for people.
        revoke_tokens: Whether API tokens become invalid.
    """
    runs = _hold_runs()
    triggers = _pause_triggers()
    OrmQ.objects.all().delete()
    EndedRun.objects.all().delete()
    ServerProcess.objects.exclude(pk=ServerProcess.RETIRED).delete()
    for _config, hold in collect("restored", "AFTER_RESTORE"):
        hold()
    sessions, _ = Session.objects.all().delete()
    tokens = 0
    if revoke_tokens:
        tokens = ApiToken.objects.filter(revoked_at=None).update(revoked_at=timezone.now())
    done = Reviewed(runs, triggers, sessions, tokens)
    record(
        "backup.restored",
        "backup",
        name=backup,
        changes={name: (0, count) for name, count in asdict(done).items()},
        note=f"Restored from the backup of {made_at}.",
    )
    return done


def _hold_runs() -> int:
    """Keep all processes from continuing runs that were working. Return how many are held."""
    unfinished = Run.every.exclude(status__in=ENDED_RUNS)
    parents = dict(unfinished.values_list("pk", "parent_id"))
    working = unfinished.filter(
        Q(status__in=(RunStatus.QUEUED, RunStatus.RUNNING)) | Q(wake_at__isnull=False)
    )
    roots = {_root(run, parents) for run in working.values_list("pk", flat=True)}
    pending = unfinished.filter(status=RunStatus.PENDING).values_list("pk", flat=True)
    held = [run for run in parents if _root(run, parents) in roots]
    held += [run for run in pending if run not in set(held)]
    for part in _parts(held):
        Run.every.filter(pk__in=part).update(executor=RESTORED)
        RunClock.objects.filter(run__in=part).update(lease_until=None, lease_holder="")
        # The engine closes started calls as interrupted: they may have happened.
        calls = ToolCall.objects.filter(
            run__in=part,
            run__status__in=(RunStatus.QUEUED, RunStatus.RUNNING),
            status__in=(ToolCallStatus.PENDING, ToolCallStatus.APPROVED),
        )
        calls.exclude(effect=Effect.READ).update(
            status=ToolCallStatus.STARTED, started_at=timezone.now()
        )
    # An expired request would continue its run without a person.
    ApprovalRequest.objects.filter(status=ApprovalStatus.PENDING).update(expires_at=None)
    return len(held)


def _root(run: str, parents: Mapping[str, str | None]) -> str:
    while (parent := parents.get(run)) is not None and parent in parents:
        run = parent
    return run


def _parts(ids: list[str]) -> Iterable[list[str]]:
    return (ids[start : start + _PART] for start in range(0, len(ids), _PART))


def _pause_triggers() -> int:
    """Pause schedules, webhooks and other triggers. A person resumes each of them."""
    count = 0
    for kind in trigger_kinds():
        fields = {field.name for field in kind.model._meta.concrete_fields}
        times = {name: None for name in ("due_at", "next_at") if name in fields}
        enabled = apps.get_model(kind.model._meta.label)._default_manager.filter(is_enabled=True)
        count += enabled.update(is_enabled=False, **times)
    return count

"""The person of a call."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin
from django.db import DatabaseError

from agents.custom.context import ToolContext
from agents.middleware.context import ToolContext as EngineContext
from agents.models import Run


class AccountOff(Exception):
    """The account of the person is not active now."""


class PermissionMissing(Exception):
    """The person does not have the permission of the tool, or has lost it."""


async def context_of(engine: EngineContext, permission: str = "") -> ToolContext:
    """Return the context of a call. The person is read again, to apply present permissions.

    Raises `AccountOff` and, unless the person has `permission` now, `PermissionMissing`.
    """
    run = await engine.in_database(_asked, engine.run_id, permission)
    return ToolContext(
        user=run.owner,
        run_id=engine.run_id,
        thread_id=engine.thread_id,
        session_id=run.thread.key,
        agent=engine.spec.slug,
        call_id=engine.call_id,
        progress=engine.progress,
    )


def _asked(run_id: str, permission: str) -> Run:
    run = Run.objects.select_related("owner", "thread").get(pk=run_id)
    if not run.owner.is_active:
        raise AccountOff
    if permission and not _has(run.owner, permission):
        raise PermissionMissing(permission)
    return run


def _has(person: AbstractBaseUser, permission: str) -> bool:
    """Return whether the authentication backends, which may use databases, grant the permission."""
    try:
        return isinstance(person, PermissionsMixin) and person.has_perm(permission)
    except DatabaseError as error:
        error.add_note(
            f"Vel asked the authentication backends whether {person.get_username()} has the "
            f"permission {permission}"
        )
        raise

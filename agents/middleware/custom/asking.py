"""In whose name a call is made."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin
from django.db import DatabaseError

from agents.custom.context import ToolContext
from agents.middleware.context import ToolContext as EngineContext
from agents.models import Run


class AccountOff(Exception):
    """The person in whose name the run works has been switched off meanwhile."""


class PermissionMissing(Exception):
    """The person does not have the permission that the tool needs, or has lost it."""


async def context_of(engine: EngineContext, permission: str = "") -> ToolContext:
    """The person is read anew: what they may not do any more, no agent does in their name.

    Raises `AccountOff` and, unless they have `permission` now, `PermissionMissing`.
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
    """Ask the authentication backends, any of which may ask a database of its own."""
    try:
        return isinstance(person, PermissionsMixin) and person.has_perm(permission)
    except DatabaseError as error:
        error.add_note(
            f"Vel asked the authentication backends whether {person.get_username()} has the "
            f"permission {permission}"
        )
        raise

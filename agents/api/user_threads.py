"""Endpoints for the threads of all users, for operators. They do not serve the threads' files.

The endpoints in `threads` serve only the threads of the caller.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework import serializers

from agents.doors.rest.managed.fields import NameField, moment_field
from agents.doors.rest.managed.objects import Action, Managed
from agents.doors.rest.managed.views import endpoints
from agents.models import Thread, TokenScope
from agents.services.erasure.actions import erase_thread


class ErasedShape(serializers.Serializer[Any]):
    """The thread that was erased."""

    id = serializers.CharField()


def _erase(thread: Thread, by: AbstractBaseUser) -> dict[str, str]:
    erase_thread(thread.pk, by=by)
    return {"id": thread.pk}


USER_THREADS = Managed(
    model=Thread,
    name="user_thread",
    plural="user_threads",
    rows="user-threads",
    what="A thread of any user. Its runs are in the list of runs.",
    shown={
        "agent": NameField(allow_null=True),
        "owner": NameField(allow_null=True),
        "title": serializers.CharField(allow_blank=True),
        "key": serializers.CharField(allow_null=True),
        "runs": serializers.IntegerField(source="run_total"),
        "created_at": moment_field(),
        "updated_at": moment_field(),
    },
    filters={
        "agent": "agent__slug",
        "owner": f"owner__{get_user_model().USERNAME_FIELD}",
        "key": "key",
    },
    creates=False,
    changes=False,
    deletes=False,
    scope=TokenScope.ADMIN,
    actions=(
        Action(
            name="erase",
            summary="Erase a thread of any user permanently, with its runs and files",
            call=_erase,
            may="erase",
            answer=ErasedShape,
            admin="erase_selected",
            who="staff with `agents.erase_thread`, for threads that they may see",
        ),
    ),
    who=dict.fromkeys(
        ("list", "read"),
        "staff with `agents.view_thread`; of others: also `agents.view_all_runs`",
    ),
)

OBJECTS = [USER_THREADS]
urlpatterns = endpoints(USER_THREADS)

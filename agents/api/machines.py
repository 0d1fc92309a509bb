"""Endpoints for the machines that drive runs: docs/operations/scaling.md."""

from __future__ import annotations

import datetime
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework import serializers

from agents.doors.rest.managed.fields import Computed
from agents.doors.rest.managed.objects import Action, Managed
from agents.doors.rest.managed.views import endpoints
from agents.models import Machine, TokenScope
from agents.services.machines.actions import (
    declare_dead,
    forget_machine,
    set_draining,
    state_of,
)


class StampField(serializers.DateTimeField):
    """Seconds since 1970, as a time."""

    def to_representation(self, value: Any) -> Any:
        return super().to_representation(datetime.datetime.fromtimestamp(value, datetime.UTC))


class ForgottenShape(serializers.Serializer[Any]):
    """The machine that was taken off the list."""

    name = serializers.CharField()


def _drain(machine: Machine, by: AbstractBaseUser) -> None:
    set_draining(machine.name, True, by=by)


def _undrain(machine: Machine, by: AbstractBaseUser) -> None:
    set_draining(machine.name, False, by=by)


def _declare_dead(machine: Machine, by: AbstractBaseUser) -> None:
    declare_dead(machine.name, by=by)


def _forget(machine: Machine, by: AbstractBaseUser) -> dict[str, str]:
    forget_machine(machine.name, by=by)
    return {"name": machine.name}


MACHINES = Managed(
    model=Machine,
    name="machine",
    plural="machines",
    rows="machines",
    what="A machine that drives runs, in an installation with several. It registers itself.",
    shown={
        "state": Computed(
            lambda row: state_of(row, row.now, row.moving),
            help_text="alive, silent, draining, drained or dead.",
        ),
        "threads": serializers.IntegerField(
            source="held", help_text="The number of threads with files on the machine."
        ),
        "shares_workspaces": serializers.BooleanField(),
        "incarnation": serializers.IntegerField(),
        "seen_at": StampField(format="iso-8601", default_timezone=datetime.UTC),
    },
    creates=False,
    changes=False,
    deletes=False,
    newest_first=False,
    scope=TokenScope.ADMIN,
    actions=(
        Action(
            name="drain",
            summary="Drain a machine: it starts no runs and moves its threads to other machines",
            call=_drain,
            may="operate",
        ),
        Action(
            name="undrain",
            summary="Stop draining a machine, so that it starts runs again",
            call=_undrain,
            may="operate",
        ),
        Action(
            name="declare-dead",
            summary="Let other machines continue the threads of a lost one",
            call=_declare_dead,
            may="operate",
            admin="declare_dead",
        ),
        Action(
            name="forget",
            summary="Remove a dead machine from the list",
            call=_forget,
            may="operate",
            answer=ForgottenShape,
        ),
    ),
)

OBJECTS = [MACHINES]
urlpatterns = endpoints(MACHINES)

"""Who may have runs started in somebody's name, and whether that still holds when one is due."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin

from agents.kernel.features import collect
from agents.models import Agent, Trigger
from agents.selectors.visible import agents_for
from agents.services.errors import InvalidRequest, NotAllowed, NotFound
from agents.services.tokens import check_name

MESSAGE_CHARACTERS = 100_000


class CannotStart(NotAllowed):
    """A run that was due is not started. `code`: owner_inactive, agent_lost, or a feature's."""

    code = "cannot_start"


def check_may_define(trigger: Trigger, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed` unless `by` is the owner, or a superuser: it acts as its owner."""
    if trigger.owner_id != by.pk and not _is_superuser(by):
        raise NotAllowed("Only its owner says what is started in the owner's name.")


def check_may_stop(trigger: Trigger, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed` unless `by` may pause and delete it: the owner, or an operator."""
    permission = f"{trigger._meta.app_label}.change_{trigger._meta.model_name}"
    is_operator = isinstance(by, PermissionsMixin) and by.has_perm(permission)
    if trigger.owner_id != by.pk and not is_operator:
        raise NotAllowed(f"This is for its owner and for people with {permission}.")


def check_trigger(trigger: Trigger) -> None:
    """Raise `InvalidRequest` for a name that is none, `NotFound` for an agent not the owner's."""
    if not trigger.name.strip():
        raise InvalidRequest("name: Give it a name that says what it is for.")
    try:
        check_name(trigger.name)
    except InvalidRequest as error:
        raise InvalidRequest(f"name: {error.message}") from None
    if not agents_for(trigger.owner).filter(pk=trigger.agent_id).exists():
        raise NotFound("There is no such agent that the owner may use.", code="unknown_agent")


def check_message(message: str) -> None:
    """Raise `InvalidRequest` for what no agent could be told. What stands in braces is not read."""
    if not message.strip():
        raise InvalidRequest("message: Say what the agent should do.")
    if len(message) > MESSAGE_CHARACTERS:
        raise InvalidRequest(f"message: At most {MESSAGE_CHARACTERS:,} characters.")
    if "\x00" in message:
        raise InvalidRequest("message: Leave the NUL character out.")


def find_agent(slug: str, user: AbstractBaseUser) -> Agent:
    """Raises `NotFound`."""
    agent = agents_for(user).filter(slug=slug).first()
    if agent is None:
        raise NotFound(f"There is no agent {slug!r} that you may use.", code="unknown_agent")
    return agent


def check_can_start(trigger: Trigger) -> None:
    """Check the owner's rights, and what features say, as it is now. Raises `CannotStart`."""
    owner: Any = trigger.owner
    if not owner.is_active:
        raise CannotStart("Its owner's account is not active.", code="owner_inactive")
    if not agents_for(owner).filter(pk=trigger.agent_id).exists():
        raise CannotStart(
            "Its owner may not use the agent any more, or nobody may.", code="agent_lost"
        )
    for _, check in collect("triggers", "START_CHECKS"):
        check(trigger)


def _is_superuser(user: AbstractBaseUser) -> bool:
    return isinstance(user, PermissionsMixin) and user.is_superuser

"""The rights to have runs started in a user's name, also checked when a run is due."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import PermissionsMixin

from agents.kernel.features import collect
from agents.models import Agent, Trigger
from agents.selectors.visible import agent_named, agents_for
from agents.services.errors import InvalidRequest, NotAllowed, NotFound
from agents.services.tokens import check_name

MESSAGE_CHARACTERS = 100_000


class CannotStart(NotAllowed):
    """A due run that was not started. `code`: owner_inactive, agent_lost, or a feature's."""

    code = "cannot_start"


def check_may_define(trigger: Trigger, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed` unless `by` is a superuser or the owner, whose rights the runs use."""
    if trigger.owner_id != by.pk and not _is_superuser(by):
        raise NotAllowed(
            "Only its owner can change it, because its runs use the owner's permissions."
        )


def check_may_stop(trigger: Trigger, by: AbstractBaseUser) -> None:
    """Raise `NotAllowed` unless `by` may pause and delete a trigger: its owner, or an operator."""
    permission = f"{trigger._meta.app_label}.change_{trigger._meta.model_name}"
    is_operator = isinstance(by, PermissionsMixin) and by.has_perm(permission)
    if trigger.owner_id != by.pk and not is_operator:
        raise NotAllowed(f"This is for its owner and for people with {permission}.")


def check_trigger(trigger: Trigger) -> None:
    """Raise `InvalidRequest` for an invalid name, `NotFound` if the owner cannot use the agent."""
    if not trigger.name.strip():
        raise InvalidRequest("name: Enter a name that describes its purpose.")
    try:
        check_name(trigger.name)
    except InvalidRequest as error:
        raise InvalidRequest(f"name: {error.message}") from None
    if not agents_for(trigger.owner).filter(pk=trigger.agent_id).exists():
        raise NotFound("The owner has no access to an agent with this name.", code="unknown_agent")


def check_message(message: str) -> None:
    """Raise `InvalidRequest` for an invalid message. Variables in braces are not checked."""
    if not message.strip():
        raise InvalidRequest("message: Describe the task for the agent.")
    if len(message) > MESSAGE_CHARACTERS:
        raise InvalidRequest(f"message: At most {MESSAGE_CHARACTERS:,} characters.")
    if "\x00" in message:
        raise InvalidRequest("message: Remove the NUL character.")


def find_agent(name: str, user: AbstractBaseUser) -> Agent:
    """Return an agent that `user` may use, by its id or slug. Raises `NotFound`."""
    agent = agent_named(agents_for(user), name)
    if agent is None:
        raise NotFound(f"There is no agent {name!r} that you may use.", code="unknown_agent")
    return agent


def check_can_start(trigger: Trigger) -> None:
    """Check the owner's present rights, and the checks of features. Raises `CannotStart`."""
    owner: Any = trigger.owner
    if not owner.is_active:
        raise CannotStart("Its owner's account is not active.", code="owner_inactive")
    if not agents_for(owner).filter(pk=trigger.agent_id).exists():
        raise CannotStart(
            "Its owner no longer has access to the agent, or the agent is inactive.",
            code="agent_lost",
        )
    for _, check in collect("triggers", "START_CHECKS"):
        check(trigger)


def _is_superuser(user: AbstractBaseUser) -> bool:
    return isinstance(user, PermissionsMixin) and user.is_superuser

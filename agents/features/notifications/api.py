"""Notification targets and messages in the REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from rest_framework import serializers

from agents.doors.rest.managed.fields import moment_field
from agents.doors.rest.managed.objects import Action, Managed
from agents.doors.rest.managed.views import SecretShape, endpoints
from agents.features.notifications.actions import renew_secret, save_target
from agents.features.notifications.admin import NotificationAdmin, NotificationTargetAdmin
from agents.features.notifications.delivery import retry_notification, send_test
from agents.features.notifications.models import (
    Notification,
    NotificationStatus,
    NotificationTarget,
)
from agents.features.notifications.webhook import DeliveryFailed
from agents.services.errors import Conflict


def _save(admin: Any, request: HttpRequest, form: Any, change: bool) -> Mapping[str, Any]:
    return {"secret": save_target(form.instance)}


def _send(target: NotificationTarget, by: AbstractBaseUser) -> None:
    try:
        send_test(target)
    except DeliveryFailed as error:
        raise Conflict(f"The message was not delivered: {error}.", code="not_delivered") from None


def _renew(target: NotificationTarget, by: AbstractBaseUser) -> Mapping[str, Any]:
    return {"secret": renew_secret(target.pk)}


def _retry(message: Notification, by: AbstractBaseUser) -> None:
    retry_notification(message.pk)


TARGETS = Managed(
    model=NotificationTarget,
    admin=NotificationTargetAdmin,
    name="notification_target",
    plural="notification_targets",
    rows="notification-targets",
    what="A webhook or an e-mail address that gets messages about requests and other notices. "
    "`agent` null: about those of all agents.",
    names={"is_active": "enabled"},
    shown={"created_at": moment_field()},
    once={
        "secret": serializers.CharField(
            allow_null=True,
            help_text="The new secret with which a webhook's messages are signed.",
        )
    },
    filters={"agent": "agent__slug", "kind": "kind", "enabled": "is_active"},
    save=_save,
    actions=(
        Action(
            name="test",
            summary="Send a test message to a target",
            call=_send,
            admin="send_test_message",
        ),
        Action(
            name="new-secret",
            summary="Give a webhook that gets notifications a new secret",
            call=_renew,
            answer=SecretShape,
            admin="make_new_secret",
        ),
    ),
)

MESSAGES = Managed(
    model=Notification,
    admin=NotificationAdmin,
    name="notification",
    plural="notifications",
    rows="notifications",
    what="A message to one target. Vel writes it and tries to deliver it.",
    shown={
        "target": serializers.CharField(source="target_id"),
        "type": serializers.CharField(),
        "subject": serializers.CharField(source="subject_id"),
        "status": serializers.ChoiceField(choices=NotificationStatus.choices),
        "attempts": serializers.IntegerField(),
        "next_attempt_at": moment_field(allow_null=True),
        "error": serializers.CharField(allow_blank=True),
        "created_at": moment_field(),
        "delivered_at": moment_field(allow_null=True),
    },
    filters={"target": "target", "status": "status", "type": "type"},
    creates=False,
    changes=False,
    deletes=False,
    actions=(
        Action(
            name="retry",
            summary="Try again to deliver a message that was given up",
            call=_retry,
            may="retry",
            admin="try_again",
        ),
    ),
)

OBJECTS = [TARGETS, MESSAGES]
urlpatterns = [*endpoints(TARGETS), *endpoints(MESSAGES)]

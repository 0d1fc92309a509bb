"""Functions that open and post admin pages as a user."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.test import Client
from django.urls import reverse


def client_of(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def list_url(model: type[models.Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_url(row: models.Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def text_of(response: Any) -> str:
    return response.content.decode()


def messages_of(response: Any) -> list[str]:
    """Return the messages of the last page after the redirects."""
    return [str(message) for message in response.context["messages"]]


def act(client: Client, action: str, *rows: models.Model, **fields: Any) -> Any:
    """Select rows of their list, run an action, and follow the redirect."""
    data = {"action": action, "_selected_action": [row.pk for row in rows], "index": 0, **fields}
    return client.post(list_url(type(rows[0])), data, follow=True)

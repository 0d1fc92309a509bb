"""Clients of the tests of managed objects."""

from __future__ import annotations

from typing import Any

from tests.agents.api.rows import APIClient, client_for, make_user

SCOPES = ("read", "run", "approve", "manage", "admin")


def operator(*permissions: str, name: str = "olga", scopes: tuple[str, ...] = SCOPES) -> APIClient:
    """Return a client of a member of the staff with these permissions."""
    user = make_user(name, *permissions)
    user.is_staff = True
    user.save()
    return client_for(user, *scopes)


def patch(client: APIClient, url: str, body: object, **headers: str) -> Any:
    return client.patch(url, body, format="json", headers=headers)


def post(client: APIClient, url: str, body: object = None) -> Any:
    return client.post(url, body, format="json")

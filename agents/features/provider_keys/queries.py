"""The state of each provider's key, without the key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.views.decorators.debug import sensitive_variables

from agents.features.provider_keys.models import ProviderKey
from agents.providers.addresses import origin_of
from agents.providers.registry import MAKERS, base_url_of, configured_key
from agents.secret_text import SecretUnreadable
from agents.services.agent_definitions.settings_places import setting_names, settings_of

ENDING = 4
SHOWN_FROM = 20
"""The last characters of a shorter key would be too large a part of it."""

InUse = Literal["settings", "stored", "none"]


@dataclass(frozen=True, slots=True)
class KeyState:
    """The key of one provider.

    `in_use` is where the key in use comes from: the settings or the environment, a stored key, or
    nowhere. `setting` is the name of the setting and of the variable. `ending` has the last
    characters of the key in use. `problem` is the reason why the stored key is not usable.
    """

    provider: str
    origin: str
    in_use: InUse
    setting: str
    ending: str
    is_stored: bool
    stored_origin: str
    set_by: str
    set_at: datetime | None
    problem: str


def key_states() -> list[KeyState]:
    """Return the state of all providers. The caller has checked the permission."""
    rows = {row.provider: row for row in ProviderKey.objects.select_related("set_by")}
    return [_state(provider, rows.get(provider)) for provider in MAKERS]


@sensitive_variables()
def _state(provider: str, row: ProviderKey | None) -> KeyState:
    settings = settings_of(provider)
    origin = origin_of(base_url_of(provider, settings))
    name = setting_names(provider)[0]
    key, problem = configured_key(provider, settings), ""
    in_use: InUse = "settings" if key is not None else "none"
    if row is not None:
        try:
            stored = row.secret.reveal()
        except SecretUnreadable as error:
            stored, problem = "", str(error)
        if row.origin != origin:
            problem = (
                f"This key is for {row.origin}, and the base URL is now at {origin}, which does "
                "not get it. Store a key for the new server, or remove this one."
            )
        if key is None and not problem:
            key, in_use = stored, "stored"
    return KeyState(
        provider=provider,
        origin=origin,
        in_use=in_use,
        setting=name,
        ending=key[-ENDING:] if key and len(key) >= SHOWN_FROM else "",
        is_stored=row is not None,
        stored_origin=row.origin if row is not None else "",
        set_by=row.set_by.get_username() if row is not None and row.set_by is not None else "",
        set_at=row.set_at if row is not None else None,
        problem=problem,
    )

"""Keys of providers that people have stored, as this process knows them now.

Features read them from their rows (`stored_keys.SOURCES`). Model calls read only the copy in this
module, because the event loop must not query the database. `refresh_stored_keys` reads the rows
again: workers call it each second and for each claim. Code that determines the default provider for
a new version of an agent, or for a page, calls it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.kernel.lazy_modules import lazy_modules

with lazy_modules:
    from agents.kernel import features  # needs Django, and the scripted model does not


@dataclass(frozen=True, slots=True)
class StoredKey:
    """The key of a maker's API for one server. `origin` is its scheme, host and port.

    `problem` is the reason why the key cannot be read, or "".
    """

    maker: str
    origin: str
    api_key: str = field(default="", repr=False)
    problem: str = ""


_keys: Mapping[str, StoredKey] = {}


def stored_key(maker: str) -> StoredKey | None:
    """Return the stored key of a maker as this process knows it. Reads no rows."""
    return _keys.get(maker)


def refresh_stored_keys() -> None:
    """Read the keys from the rows of the features. Raises `DatabaseError`."""
    global _keys
    _keys = {
        key.maker: key
        for _, source in features.collect("stored_keys", "SOURCES")
        for key in source()
    }

"""No key of this process's environment, and no key that another test has stored."""

from __future__ import annotations

import pytest

from agents.providers import stored_keys
from agents.providers.registry import _VARIABLES


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, keys in _VARIABLES.values():
        for name in (address, *keys):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(stored_keys, "_keys", {})

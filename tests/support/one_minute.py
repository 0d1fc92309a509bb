"""Rate limits count a whole test as one minute, for any duration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


class Clock:
    """A clock that is stopped early in a minute. A test can set `now`."""

    now = 1_000_000 * 60 + 10.5

    @classmethod
    def time(cls) -> float:
        return cls.now


@pytest.fixture
def one_minute(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from agents.services import request_rates  # needs Django, which is set up after this plugin

    monkeypatch.setattr(request_rates, "time", Clock())
    request_rates.forget_shares()
    yield
    request_rates.forget_shares()

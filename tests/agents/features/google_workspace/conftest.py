from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.google_workspace_server import GoogleServer, google_server


@pytest.fixture
def google(settings: Any) -> Iterator[GoogleServer]:
    with google_server() as server:
        settings.VEL = {**settings.VEL, **server.settings}
        yield server

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.slack_server import SlackServer, slack_server


@pytest.fixture
def slack(settings: Any) -> Iterator[SlackServer]:
    with slack_server() as server:
        settings.VEL = {**settings.VEL, "SLACK_URL": server.url}
        yield server

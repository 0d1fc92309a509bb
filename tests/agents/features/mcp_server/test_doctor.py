"""The doctor's report on agents that are offered as tools."""

from __future__ import annotations

import pytest

from agents.features.mcp_server import doctor
from agents.features.mcp_server.doctor import check_offers
from agents.kernel.findings import Finding, Level
from tests.agents.api.rows import make_agent

pytestmark = pytest.mark.django_db


def test_agents_that_are_offered_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    make_agent("plain")
    assert list(check_offers()) == []
    make_agent("ada", mcp_tool=True)
    make_agent("off", mcp_tool=True, is_active=False)
    assert list(check_offers()) == [
        Finding("agents over MCP", Level.OK, "1 offered as tools at /mcp")
    ]
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    (broken,) = check_offers()
    assert broken.level == Level.BROKEN
    assert broken.mend == "pip install 'vel[mcp]'"

"""Every test here runs once for each wire protocol."""

from __future__ import annotations

import pytest

from tests.agents.providers.contract.wires import WIRES, Wire


@pytest.fixture(params=WIRES, ids=str)
def wire(request: pytest.FixtureRequest) -> Wire:
    found: Wire = request.param
    return found

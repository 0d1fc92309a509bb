"""Fixtures of tests of other doors, which the tests of approvals also use."""

from tests.agents.consumers.conftest import open_client
from tests.agents.web.conftest import run, sign_in
from tests.velproject.conftest import vel

__all__ = ["open_client", "run", "sign_in", "vel"]

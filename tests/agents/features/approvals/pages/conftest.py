"""Users of the pages."""

from tests.agents.web.conftest import run, sign_in

__all__ = ["run", "sign_in"]

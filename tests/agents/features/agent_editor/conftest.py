"""The fixtures of the pages."""

from tests.agents.web.conftest import SignIn, sign_in

__all__ = ["SignIn", "sign_in"]

"""The command line lists the choices of options completely without loading Django."""

from __future__ import annotations

from agents.models.token import TokenScope
from agents.providers.registry import PROVIDERS
from velproject.cli.commands.accounts import SCOPES
from velproject.cli.commands.runs.run import PROVIDERS as NAMES


def test_every_scope_of_a_token_can_be_given() -> None:
    assert TokenScope.values == SCOPES


def test_every_provider_can_be_named() -> None:
    assert set(NAMES) == set(PROVIDERS)

"""The gate that decides about the calls of all runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.engine.gate import installed_gate
from agents.engine.worker import Worker
from agents.features.approvals import gate
from agents.features.approvals.gate import ApprovalsGate

APPROVALS = "agents.features.approvals"


def test_a_worker_does_not_start_without_a_gate(settings: Any) -> None:
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != APPROVALS]
    with pytest.raises(ImproperlyConfigured, match=r"these do: none.*VEL_DISABLED_FEATURES"):
        Worker()


def test_a_worker_does_not_start_with_two_gates(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "GATES", [ApprovalsGate, ApprovalsGate])
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS]  # forgets the gate
    with pytest.raises(ImproperlyConfigured, match=f"these do: {APPROVALS}, {APPROVALS}"):
        Worker()


def test_the_gate_of_vel_is_that_of_the_approvals() -> None:
    assert installed_gate() is ApprovalsGate

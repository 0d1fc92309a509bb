"""Reasons of operations not to start on a database."""

from __future__ import annotations

from agents.features.operations.database_move.marker import refusal

REFUSALS = (refusal,)

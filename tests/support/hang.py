"""How long a test waits for something that always comes."""

from __future__ import annotations

HANG = 300.0
"""Seconds. Nothing takes so long, not even on a busy machine: at the end of it something hangs.

It is less than pytest's own limit (`timeout` in pyproject.toml), so that the test can say what it
waited for. A test that takes long sets its own limit to a multiple.
"""

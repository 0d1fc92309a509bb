"""Failures of the tail's connection or of its code."""

from __future__ import annotations

"""Structured answers of a Python program's agent."""

from __future__ import annotations

from agents.features.structured_output.options import RepairOptions
from agents.kernel.programs import OptionArguments

PROGRAM_OPTIONS = (OptionArguments(RepairOptions),)

"""The delegation of a Python program's agent."""

from __future__ import annotations

from agents.features.subagents.options import SubagentOptions
from agents.kernel.programs import OptionArguments

PROGRAM_OPTIONS = (OptionArguments(SubagentOptions, "max_concurrent_subagents"),)

"""Long conversations of a Python program's agent."""

from __future__ import annotations

from agents.features.compaction.options import ContextOptions
from agents.kernel.programs import OptionArguments

PROGRAM_OPTIONS = (OptionArguments(ContextOptions),)

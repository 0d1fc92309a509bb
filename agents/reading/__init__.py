"""A call as a person reads it before deciding: what would run, and what it would change.

Pure functions from a tool's name and input to a `Reading`, which pages, terminals and the API
render without knowing any tool. Whatever is too long to be shown is counted, and its beginning and
its end are shown.
"""

from agents.reading.as_text import as_text
from agents.reading.budget import budget_reading
from agents.reading.call import call_reading
from agents.reading.memory_edit import memory_edit_reading
from agents.reading.parts import Finding, Reading, Unreadable, as_json

__all__ = [
    "Finding",
    "Reading",
    "Unreadable",
    "as_json",
    "as_text",
    "budget_reading",
    "call_reading",
    "memory_edit_reading",
]

"""A call as a person reads it before deciding: what would run, and what it would change.

Pure functions from a tool's name and input to a `Reading`, which pages, terminals and the API
render without knowing any tool. Whatever is too long to be shown is counted, and its beginning and
its end are shown.
"""

from agents.review.as_text import as_text
from agents.review.call import call_review
from agents.review.parts import Finding, Review, Unreadable, as_json

__all__ = [
    "Finding",
    "Review",
    "Unreadable",
    "as_json",
    "as_text",
    "call_review",
]

"""Tool calls in a readable form, for a person who decides on them: the call and its changes.

Pure functions convert a tool's name and input to a `Review`, which pages, terminals and the API
render without knowledge of the tool. Of texts that are too long, the review shows the start, the
end and the size of the rest.
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

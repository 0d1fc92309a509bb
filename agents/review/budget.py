"""A request for more than a limit allows, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.review.fields import fields_section
from agents.review.parts import Note, Review, one_line


def budget_review(asked: Mapping[str, Any]) -> Review:
    """`asked` is `ApprovalRequest.input` of the kind `budget`."""
    window = asked.get("window")
    whose = "one run" if window is None else f"{asked['budget']}: {window}"
    fields = {"Limit of": one_line(str(whose))}
    if "limit_tokens" in asked:
        fields |= {
            "Used": f"{asked['used_tokens']:,} tokens",
            "Limit": f"{asked['limit_tokens']:,} tokens",
        }
        title, more = "Give more tokens", f"{asked['more_tokens']:,} tokens more"
    else:
        fields |= {"Used": f"${asked['used_cost']}", "Limit": f"${asked['limit_cost']}"}
        title, more = "Let it cost more", f"${asked.get('more_cost')} more"
    if "without_price" in asked:
        title = "Go on without a price"
        more = f"calls of {one_line(str(asked['model']))}, whose price is not known: they count $0"
    fields["An approval gives"] = more
    note = Note("A rejection ends the run; whoever waits with it for the same ends, too.")
    return Review(title, (fields_section("", fields),), (note,))

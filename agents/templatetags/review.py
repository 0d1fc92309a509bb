"""`{% review review %}`: a waiting call as a person reads it."""

from __future__ import annotations

from django import template

from agents.review import Review

register = template.Library()


@register.inclusion_tag("web/review.html", name="review")
def review_tag(review: Review) -> dict[str, Review]:
    """Return the context of the template.

    The page needs agents/web/review.css. `review.js` creates the same elements in a browser.
    """
    return {"review": review}

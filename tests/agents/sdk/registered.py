"""Tools that tests register by their dotted paths."""

from __future__ import annotations

from django.contrib.auth.models import User

from vel import ToolContext, tool


@tool(effect="read")
def colleagues(context: ToolContext) -> list[str]:
    """List the names of the people whom the asking person may see."""
    people = User.objects.order_by("username")
    if not context.user.has_perm("auth.view_user"):
        people = people.filter(pk=context.user.pk)
    return list(people.values_list("username", flat=True))


def outside(text: str) -> str:
    """Tell somebody outside."""
    return text


@tool(effect="read", requires_approval=True)
def careful() -> str:
    """Be careful."""
    return "careful"


def ls() -> str:
    """Take a name of Vel's."""
    return ""


def mcp__plain__say(text: str) -> str:
    """Take the name of a server's tool."""
    return text

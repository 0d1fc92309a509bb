"""Tools with which an agent uses the books of the run's owner."""

from typing import Any

from library.models import Book, Copies

from vel import ToolContext, tool


@tool(effect="read", permission="library.view_book")
def find_books(context: ToolContext, word: str = "") -> list[dict[str, Any]]:
    """Find books of the person you work for.

    Args:
        word: A part of the title
    """
    books = context.user.books.filter(title__icontains=word).order_by("title")
    return list(books.values("title", "lent_to"))


def lend_book(title: str, to: str, context: ToolContext) -> str:
    """Note that a book is lent, and to whom."""
    lent = Book.objects.filter(owner=context.user, title=title).update(lent_to=to)
    if to == "nobody":
        raise ValueError("say to whom")
    return f"{lent} lent to {to}"


@tool(effect="read", permission="library.view_book")
async def count_copies(title: str) -> int:
    """How many copies the shop has."""
    return await Copies.objects.filter(title=title).acount()

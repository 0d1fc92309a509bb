"""Actions on many rows: a page lists the rows, then each row is changed in its own transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext

from agents.doors.admin.strict_pages import STYLES, strict
from agents.hidden_text import visible
from agents.services.errors import ServiceError
from agents.states import IllegalTransition

MOST = 1_000
"""Maximum number of rows. Each is a separate transaction, and a person waits."""
NAMED = 50
"""Maximum number of rows on the page, and of names in a message."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """An action, with texts that can be translated.

    `what` names it with `%(count)s` and `%(rows)s`, as in "Cancel 3 runs". `failed` is a message
    with `%(failed)s`, `%(count)s` and `%(problems)s`.
    """

    action: str
    what: str | Promise
    failed: str | Promise
    warning: str | Promise = ""
    is_dangerous: bool = False


def carry_out(
    page: ModelAdmin[Any],
    request: HttpRequest,
    rows: QuerySet[Any],
    bulk: Bulk,
    do: Callable[[Any], str | Promise],
    name: Callable[[Any], str],
) -> HttpResponse | None:
    """Show a confirmation page, then call `do` for each row and add messages with the results.

    `do` checks the permission for its row and returns the outcome. `name` returns the name of a row
    for the pages. Refusals of services become messages. Returns None for a redirect to the list.
    """
    chosen = list(rows[: MOST + 1])
    if len(chosen) > MOST:
        text = gettext(
            "There are more than %(most)s rows, which is too many for one action. Filter the list "
            "and try again."
        )
        most = number_format(MOST, force_grouping=True)
        page.message_user(request, text % {"most": most}, messages.ERROR)
        return None
    if request.POST.get("confirmed") != bulk.action:
        return _ask(page, request, chosen, bulk, name)
    outcomes: dict[str, list[str]] = {}
    refused: list[str] = []
    for row in chosen:
        try:
            outcomes.setdefault(str(do(row)), []).append(name(row))
        except (ServiceError, IllegalTransition) as error:
            refused.append(f"{name(row)}: {visible(str(error))}")
    for outcome, names in outcomes.items():
        values = {
            "done": len(names),
            "count": len(chosen),
            "outcome": outcome,
            "names": _some(names),
        }
        text = gettext("%(done)s of %(count)s: %(outcome)s (%(names)s).")
        page.message_user(request, text % values, messages.SUCCESS)
    if refused:
        values = {
            "failed": len(refused),
            "count": len(chosen),
            "problems": _some(refused, "; "),
        }
        page.message_user(request, bulk.failed % values, messages.ERROR)
    return None


def _ask(
    page: ModelAdmin[Any],
    request: HttpRequest,
    rows: Sequence[Model],
    bulk: Bulk,
    name: Callable[[Any], str],
) -> HttpResponse:
    noun = page.opts.verbose_name if len(rows) == 1 else page.opts.verbose_name_plural
    what = bulk.what % {"count": len(rows), "rows": noun}
    context = {
        **page.admin_site.each_context(request),
        "opts": page.opts,
        "media": STYLES,
        "title": f"{what}?",
        "button": what,
        "bulk": bulk,
        "named": [name(row) for row in rows[:NAMED]],
        "more": max(0, len(rows) - NAMED),
        "keys": [row.pk for row in rows],
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
    }
    request.current_app = page.admin_site.name
    return strict(TemplateResponse(request, "admin/agents/confirm_bulk.html", context))


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = len(texts) - NAMED
    message = between.join(texts[:NAMED])
    if more <= 0:
        return message
    return gettext("%(names)s and %(count)s more") % {"names": message, "count": more}

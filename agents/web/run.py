"""The page of a run, and its actions over HTTP."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from agents.doors.web.pages import PersonRequest, page, wants_json
from agents.doors.web.run_panels import run_panels
from agents.doors.web.tool_forms import forms_for_page, tool_forms
from agents.events.read import ROWS_AT_ONCE
from agents.hidden_text import visible
from agents.ids import new_id
from agents.kernel.triggers import trigger_kinds
from agents.models import NEVER_STARTED, ApprovalRequest, Message, MessageRole, Run
from agents.review.call import readable_tools
from agents.selectors.disk_space import waiting_for_space
from agents.selectors.family import descendants_of
from agents.selectors.held import why_held
from agents.selectors.queue import QueueFilter, paths_of_runs, queue_of
from agents.selectors.starters import kind_of_starter
from agents.selectors.visible import (
    Person,
    approvals_for,
    runs_for,
    watchable_runs_for,
)
from agents.services.agent_definitions.actions import SCRIPTED
from agents.services.errors import NotAllowed
from agents.services.runs.control import cancel_for, may_cancel
from agents.services.runs.model_choice import model_choices, model_name
from agents.settings import UploadSettings
from agents.spec import AgentSpec
from agents.states import ApprovalStatus
from agents.web.cards import card_json, cards_of
from agents.web.files import NO_FILES, list_files

THREAD_RUNS = 50
"""A run's page links to the last runs of its thread, up to this number."""
THREAD_TEXT = 200
"""Displayed characters of the message of each of these runs."""
SHOWN_REQUESTS = 50
"""Maximum of requests of a run and its subagents on its page. The queue shows all of them."""


@page
@require_safe
def run_page(request: PersonRequest, run_id: str) -> HttpResponse:
    """Show the frame of the page. The transcript arrives over the socket, from the first event."""
    return page_of_run(request, run_id)


def page_of_run(
    request: PersonRequest,
    run_id: str,
    *,
    text: str = "",
    model: str | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render the page of a run.

    Args:
        text: A follow-up message that was refused, to be corrected.
        model: The model that was chosen for it. None: the model that was chosen for the run.
        problem: The reason for the refusal.
        status: The HTTP status.
    """
    run = _watchable(request, run_id)
    spec = run.spec
    is_owner = run.owner_id == request.user.pk
    may_write = is_owner and run.parent_id is None
    forms = tool_forms()
    context = {
        "run": run,
        "message": _message_text(run),
        "uploads": run.uploads.all() if run.has_uploads else (),
        "spec": spec,
        "is_draft": run.source == "draft",
        "is_scripted": spec["provider"] == SCRIPTED,
        "is_owner": is_owner,
        "may_cancel": may_cancel(request.user, run),
        "may_write": may_write,
        "models": _models(run, model) if may_write else [],
        **_above(request.user, run),
        "started_by": _started_by(run, is_owner=is_owner),
        "usage": usage_of_family(run),
        "note": why_held(run) or waiting_for_space(run),
        "key": new_id(),
        "readable_tools": readable_tools(),
        "tool_forms": json.dumps(forms_for_page(forms)),
        "form_scripts": list(dict.fromkeys(form.script for form in forms if form.script)),
        "panels": run_panels(),
        "text": text,
        "problem": problem,
        "upload_limits": UploadSettings.now(),
    }
    return render(request, "web/run.html", context, status=status)


@page
@require_safe
def run_summary(request: PersonRequest, run_id: str) -> JsonResponse:
    """Return the current data next to the transcript, ready to display."""
    run = _watchable(request, run_id)
    may_read = runs_for(request.user).filter(pk=run.pk).exists()
    return JsonResponse(
        {
            "status": run.status,
            "note": why_held(run) or waiting_for_space(run),
            **usage_of_family(run),
            "started_at": _iso(run.started_at),
            "ended_at": _iso(run.ended_at),
            **_approvals(request.user, run),
            "outputs": list_files(run) if may_read else NO_FILES,
            "thread": _thread(request.user, run),
        }
    )


@page
@require_POST
def cancel(request: PersonRequest, run_id: str) -> HttpResponse:
    """Cancel the run and redirect to its page.

    With `Accept: application/json`, the response has the problem, or an empty text, as `message`.
    """
    run = _watchable(request, run_id)
    problem = ""
    try:
        cancel_for(request.user, run)
    except NotAllowed as error:
        problem = error.message
    if wants_json(request):
        return JsonResponse({"message": problem}, status=403 if problem else 200)
    if problem:
        messages.error(request, problem)
    return redirect("web:run", run_id=run.id)


def usage_of_family(run: Run) -> dict[str, Any]:
    """Return the usage of the run and its descendants (at most 500): `tokens`, `turns` and `cost`.

    `cost` is in dollars as text, or None if a price is unknown. `own_tokens` are the tokens of the
    run itself, `members` is the number of counted runs.
    """
    below = descendants_of(run.pk, Run.objects.select_related("clock"))
    clocks = [run.clock, *(member.clock for member in below)]
    costs = [clock.cost for clock in clocks]
    known = [cost for cost in costs if cost is not None]
    return {
        "tokens": sum(clock.total_tokens for clock in clocks),
        "own_tokens": run.clock.total_tokens,
        "turns": sum(clock.turn for clock in clocks),
        "members": len(clocks),
        "cost": f"{sum(known):.4f}" if len(known) == len(costs) else None,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _above(person: User, run: Run) -> dict[str, Any]:
    """Return the path of agents above a subagent's run, and its parent if it is visible."""
    if run.parent_id is None:
        return {}
    names = paths_of_runs([run])[run.pk]
    parent = watchable_runs_for(person).filter(pk=run.parent_id).first()
    return {"parent": parent, "path_above": " › ".join(names[:-1])}


def _started_by(run: Run, *, is_owner: bool) -> dict[str, str] | None:
    """Return the trigger that started the run, with its page for the owner. None for a person."""
    source = kind_of_starter(run)
    kind = next((kind for kind in trigger_kinds() if kind.source == source), None)
    if kind is None:
        return None
    trigger = kind.model._default_manager.filter(pk=run.trigger).first()
    url = reverse(kind.page, args=[trigger.pk]) if trigger is not None and is_owner else ""
    name = trigger.name if trigger is not None else gettext("(removed)")  # type: ignore[attr-defined]
    return {"what": str(kind.label), "name": name, "url": url}


def _approvals(person: User, run: Run) -> dict[str, Any]:
    """Return the pending requests of the run and its subagents, as the page's script expects them.

    `approvals` are cards, at most `SHOWN_REQUESTS`. `for_others` is the number of requests that
    `person` cannot see.
    """
    family = [run.pk, *(member.pk for member in descendants_of(run.pk, Run.objects.only("pk")))]
    rows = list(queue_of(person, QueueFilter()).filter(run__in=family)[:SHOWN_REQUESTS])
    pending = ApprovalRequest.objects.filter(run__in=family, status=ApprovalStatus.PENDING)
    cards = cards_of(rows, person)
    seen = approvals_for(person).filter(run__in=family, status=ApprovalStatus.PENDING)
    hidden = pending.count() - seen.count()
    return {"approvals": [card_json(card) for card in cards], "for_others": hidden}


def _watchable(request: PersonRequest, run_id: str) -> Run:
    runs = watchable_runs_for(request.user).select_related(
        "thread__agent", "agent_version", "owner", "clock"
    )
    return get_object_or_404(runs, pk=run_id)


def _models(run: Run, chosen: str | None) -> list[dict[str, Any]]:
    """Return the models for the next message; none if there is only the agent's own.

    The value of the agent's own model is empty: the next message uses the one of that time.
    """
    latest = run.thread.agent.versions.order_by("-number").first()
    names = list(model_choices(latest.spec if latest else {}))
    if len(names) < 2:
        return []
    if chosen is None:
        chosen = model_name(AgentSpec.model_validate(run.spec)) if run.subagent_spec else ""
    return [
        {"value": value, "label": visible(name), "is_chosen": value == chosen}
        for value, name in zip(["", *names[1:]], names, strict=True)
    ]


def _message_text(run: Run) -> str:
    """Return the first message of the run."""
    asked = Message.objects.filter(run=run, turn=0, role=MessageRole.USER).first()
    return asked.text if asked else ""


def _thread(person: Person, run: Run) -> list[dict[str, Any]]:
    """Return the runs of the conversation, oldest first."""
    latest = (
        watchable_runs_for(person).filter(thread=run.thread_id, parent=None).exclude(NEVER_STARTED)
    )
    runs = list(latest.order_by("-number")[:THREAD_RUNS])
    asked = Message.objects.filter(run__in=runs, turn=0, role=MessageRole.USER)
    # A message may have a megabyte: keep only the start.
    texts = {
        message.run_id: message.text[:THREAD_TEXT]
        for message in asked.iterator(chunk_size=ROWS_AT_ONCE)
    }
    return [
        {
            "id": other.pk,
            "number": other.number,
            "status": other.status,
            "text": visible(texts.get(other.pk, "")),
        }
        for other in reversed(runs)
    ]

"""Decisions on one or several requests from HTML forms, with or without JavaScript."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, cast

from django.contrib import messages
from django.http import HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.doors.web.pages import PersonRequest, page
from agents.features.approvals.pages.queue import back_to, card_rows
from agents.hidden_text import unescaped_text, visible
from agents.kernel.proposals import proposal_kind
from agents.middleware.decisions import decide
from agents.models import ApprovalRequest
from agents.selectors.visible import approvals_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import (
    InvalidRequest,
    NotFound,
    ServiceError,
)
from agents.states import ApprovalStatus, Decision
from agents.web.cards import cards_of, terms_of

SEVERAL = 100
"""Maximum number of requests in one form."""
REASON_CHARACTERS = 100_000
ALWAYS = "always"
"""The form's value for an approval with a grant."""
_ID = re.compile("[0-9a-z]{1,26}")
_SAID = {
    Decision.APPROVE: _("Approved: %(what)s."),
    Decision.EDIT: _("Approved with changes: %(what)s."),
    Decision.REJECT: _("Rejected: %(what)s."),
    Decision.RESPOND: _("Answered: %(what)s."),
}


@page
@require_POST
def decide_one(request: PersonRequest, request_id: str) -> HttpResponse:
    """Decide one request. The form contains `decision` and `digest` (of the displayed request).

    Returns JSON if the client accepts it. Otherwise redirects to the queue, or, if the decision is
    refused, shows the page of the request with the submitted values.
    """
    try:
        answer = _answer_of(request.POST, request_id, request)
        decided = decide(request_id, answer, by=request.user)
    except ServiceError as error:
        return _refused(request, request_id, error)
    message = _said(decided)
    if _wants_json(request):
        return JsonResponse({"message": message, "is_pending": decided.status == "pending"})
    messages.success(request, message)
    return redirect(back_to(request))


@page
@require_POST
def decide_several(request: PersonRequest) -> HttpResponse:
    """Apply the same decision to each of the `selected` requests (`id:digest`), one by one."""
    decision = request.POST.get("decision", "")
    reason = request.POST.get("reason", "")
    selected = request.POST.getlist("selected")
    results: list[dict[str, Any]] = []
    problem = ""
    if decision not in (Decision.APPROVE, Decision.REJECT):
        problem = gettext("You can only approve or reject several requests together.")
    elif not selected:
        problem = gettext("Select some requests first.")
    elif len(selected) > SEVERAL:
        problem = gettext("Select at most %(most)s requests.") % {"most": SEVERAL}
    else:
        results = [_decide_selected(each, decision, reason, request) for each in selected]
    if _wants_json(request):
        status = 400 if problem else 200
        return JsonResponse({"message": problem, "results": results}, status=status)
    if problem:
        messages.error(request, problem)
    done = [result for result in results if result["is_done"]]
    if done:
        messages.success(request, _SAID[Decision(decision)] % {"what": len(done)})
    for result in results:
        if not result["is_done"]:
            messages.error(request, f"{result['what']}: {result['message']}")
    return redirect(back_to(request))


def _decide_selected(
    selected: str, decision: str, reason: str, request: PersonRequest
) -> dict[str, Any]:
    key, _, digest = selected.partition(":")
    result = {"id": visible(key)[:40], "what": visible(key)[:40], "is_done": False}
    try:
        if not _ID.fullmatch(key):
            raise NotFound(_no_request(key))
        answer = DecisionRequest(decision, digest, reason=_text(reason))
        decided = decide(key, answer, by=request.user)
    except ServiceError as error:
        displayed = approvals_for(request.user).filter(pk=key) if _ID.fullmatch(key) else None
        tool = displayed.values_list("tool", flat=True).first() if displayed is not None else None
        if tool is not None:
            result["what"] = visible(tool)
        return {**result, "message": visible(error.message)}
    return {**result, "what": visible(decided.tool), "is_done": True, "message": _said(decided)}


def _answer_of(typed: QueryDict, request_id: str, request: PersonRequest) -> DecisionRequest:
    decision = typed.get("decision", "")
    # Never None: this page can only decide requests that it has displayed.
    digest = typed.get("digest", "")
    reason = _text(typed.get("reason", ""))
    if decision == ALWAYS:
        return DecisionRequest(Decision.APPROVE, digest, always=terms_of(typed))
    if decision != Decision.EDIT:
        return DecisionRequest(decision, digest, reason=reason)
    if "content" in typed:
        arguments = _input_with_content(typed.get("content", ""), request_id, request)
    else:
        arguments = _parsed(typed.get("input", ""))
    return DecisionRequest(decision, digest, arguments, reason)


def _input_with_content(typed: str, request_id: str, request: PersonRequest) -> dict[str, Any]:
    """Return the input with its content replaced. For a proposal, return the content only."""
    # Browsers send line breaks in forms as CR LF. A CR in the file itself is escaped.
    content = unescaped_text(typed.replace("\r\n", "\n"))
    approval = approvals_for(request.user).filter(pk=request_id).first()
    if approval is None:
        raise NotFound(_no_request(request_id))
    if proposal_kind(approval) is not None:
        return {"content": content}
    if not isinstance(approval.input, dict) or not isinstance(approval.input.get("content"), str):
        raise InvalidRequest(gettext("This call has no content to edit: edit its whole input."))
    return {**approval.input, "content": content}


def _no_request(key: str) -> str:
    return gettext("There is no request %(key)s that you may decide.") % {"key": repr(key)}


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        problem = gettext("This is not JSON: %(problem)s at line %(line)s, column %(column)s.")
        values = {"problem": error.msg, "line": error.lineno, "column": error.colno}
        raise InvalidRequest(problem % values) from None
    except RecursionError:
        raise InvalidRequest(gettext("The JSON is nested too deeply.")) from None
    except ValueError as error:  # an integer with thousands of digits
        problem = gettext("The JSON holds a number that is too long: %(problem)s.")
        raise InvalidRequest(problem % {"problem": error}) from None
    if not isinstance(value, dict):
        raise InvalidRequest(gettext("Write an object: { … }"))
    return cast(dict[str, Any], value)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    problem = gettext("%(text)s is not a valid JSON number.")
    raise InvalidRequest(problem % {"text": text[:40]})


def _text(typed: str) -> str:
    text = typed.replace("\r\n", "\n")
    if "\x00" in text:
        raise InvalidRequest(gettext("The text contains a NUL character. Remove it."))
    if len(text) > REASON_CHARACTERS:
        most = number_format(REASON_CHARACTERS, force_grouping=True)
        raise InvalidRequest(
            gettext("The text is longer than %(most)s characters.") % {"most": most}
        )
    return text


def _refused(request: PersonRequest, request_id: str, error: ServiceError) -> HttpResponse:
    message = visible(error.message)
    if _wants_json(request):
        return JsonResponse({"message": message, "code": error.code}, status=error.http_status)
    row = get_object_or_404(card_rows(request.user), pk=request_id)
    [card] = cards_of([row], request.user, opened=True)
    context = {"card": card, "problem": message, "typed": request.POST, "back": back_to(request)}
    return render(request, "vel_approvals/approval.html", context, status=error.http_status)


def _said(decided: ApprovalRequest) -> str:
    tool = visible(decided.tool)
    if decided.status == ApprovalStatus.PENDING:
        return gettext("You approved %(tool)s. A second person has to, too.") % {"tool": tool}
    return _SAID[Decision(decided.decision)] % {"what": tool}


def _wants_json(request: PersonRequest) -> bool:
    return request.headers.get("accept", "").startswith("application/json")

"""The page Settings of an agent.

Its owner and people with the permission to change agents edit the definition; others see who can.
The page works without scripts. Each change has the checks of an import of the agent's file.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from agents.doors.agent_form.checks import at_its_field
from agents.doors.agent_form.labels import label_of
from agents.doors.web.navigation import AGENT, NavigationEntry
from agents.doors.web.pages import PersonRequest, page
from agents.features.agent_editor.editor import FILE, TRY, Editor, file_context, page_context
from agents.features.agent_editor.form import DefinitionForm
from agents.features.agent_editor.rehearsal import RehearsalForm, rehearsed, shown_rehearsal
from agents.hidden_text import visible
from agents.middleware.registry import known_tool_names
from agents.models import Agent
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.definitions import (
    StaleDefinition,
    change_definition,
    restore_version,
)
from agents.services.agent_definitions.files import (
    InvalidAgentFile,
    carry_out_import,
    draft_spec,
    plan_import,
    with_fields,
)
from agents.services.agent_definitions.rights import may_change_definition, may_read_definition
from agents.services.errors import Conflict, InvalidRequest, NoSpace, NotAllowed, ServiceError
from agents.services.runs.start import RunRequest, create_run

NAVIGATION = [NavigationEntry("web:agent-settings", _("Settings"), place=AGENT, order=300)]
NOTE_CHARACTERS = 500


@page
@require_http_methods(["GET", "HEAD", "POST"])
def agent_settings(request: PersonRequest, slug: str) -> HttpResponse:
    """Show one section, `?section=`. A POST has `action`, and changes or tries the definition.

    `tag` and `base` identify the definition that the person has seen: if it has changed, nothing is
    stored.
    """
    agent = _agent(request, slug)
    editor = Editor(agent, request)
    if request.method != "POST":
        return _show(editor)
    if not may_change_definition(request.user, agent):
        error = NotAllowed(gettext("Only the owner and people who can change agents may do this."))
        return _show(editor, error=error)
    actions = {
        "save": _save,
        "overwrite": _save,
        "rehearse": _rehearse,
        "schema": _check_schema,
        "preview": _preview,
        "store": _store,
        "restore": _restore,
        TRY: _try,
    }
    action = actions.get(request.POST.get("action", ""))
    try:
        if action is None:
            raise InvalidRequest(gettext("Press one of the buttons."))
        return action(editor)
    except InvalidAgentFile as error:
        editor.take_problems(error)
        return _show(editor, error=error)
    except ServiceError as error:
        return _show(editor, error=error)


def _agent(request: PersonRequest, slug: str) -> Agent:
    """Return the agent. The owner can also open one that is turned off. Raises `Http404`."""
    agent = Agent.objects.filter(slug=slug).first()
    if agent is not None and (
        may_read_definition(request.user, agent)
        or agents_for(request.user).filter(pk=agent.pk).exists()
    ):
        return agent
    raise Http404("There is no such agent that you may use.")


def _save(editor: Editor) -> HttpResponse:
    """Store the fields that the person has changed, as one version.

    Fields that only others have changed since the page was opened stay as they are.
    """
    post = editor.request.POST
    editor.check_fields()
    form = editor.bound
    if not post.get("tag") or form is None:
        raise InvalidRequest(gettext("The form is not complete: open the page again."))
    note = _note(editor)
    _ = editor.seen  # Raises before the values are checked.
    if not form.is_valid():
        return _show(editor, status=400)
    values = {name: value for name, value in form.values().items() if name in editor.own_changes}
    if not values:
        messages.success(editor.request, gettext("Nothing has changed."))
        return _back(editor)
    tag = post.get("current" if post.get("action") == "overwrite" else "tag", "")
    changed = change_definition(
        editor.agent.pk,
        values,
        by=editor.request.user,
        known_tools=known_tool_names(),
        matches=f'"{tag}"',
        note=note,
    )
    return _published(editor, changed)


def _published(editor: Editor, changed: Agent) -> HttpResponse:
    if changed.version == editor.agent.version:
        text = gettext("Saved. Runs are not affected: the version is the same.")
    else:
        text = gettext("Published version %(version)s, for new runs.") % {
            "version": changed.version
        }
    messages.success(editor.request, text)
    return _back(editor)


def _note(editor: Editor) -> str:
    field = forms.CharField(required=False, max_length=NOTE_CHARACTERS)
    try:
        return str(field.clean(editor.request.POST.get("note", "")))
    except ValidationError as error:
        raise InvalidRequest(
            gettext("note: %(problem)s") % {"problem": error.messages[0]}
        ) from None


def _rehearse(editor: Editor) -> HttpResponse:
    """Show the effect of the unsaved rules on past calls."""
    editor.check_fields()
    form = RehearsalForm(editor.request.POST)
    bound = editor.bound_policy()
    problem, found = "", None
    if not form.is_valid():
        problem = gettext("days: %(problem)s") % {"problem": form.errors["days"][0]}
    elif bound is not None and not bound.is_valid():
        name, texts = next(iter(bound.errors.items()))
        problem = f"{name}: {texts[0]}"
    else:
        values = bound.values() if bound is not None else {}
        try:
            found = rehearsed(editor.agent, editor.request.user, values, form.cleaned_data["days"])
        except InvalidRequest as error:
            problem = ": ".join(filter(None, at_its_field(error.message)))
    shown = shown_rehearsal(found, problem)
    if _wants_json(editor):
        return JsonResponse(shown)
    editor.section = "approval"
    return _show(editor, rehearsal=shown)


def _check_schema(editor: Editor) -> HttpResponse:
    """Check the unsaved output schema."""
    editor.check_fields()
    form = DefinitionForm(editor.agent, ["output_schema"], editor.request.POST)
    problem = "" if form.is_valid() else form.errors["output_schema"][0]
    is_empty = not editor.request.POST.get("output_schema", "").strip()
    result = "" if problem or is_empty else gettext("The schema is valid.")
    if _wants_json(editor):
        return JsonResponse({"problem": visible(str(problem)), "result": result})
    return _show(editor, schema_result=result)


def _preview(editor: Editor) -> HttpResponse:
    plan = plan_import(
        editor.file,
        by=editor.request.user,
        known_tools=known_tool_names(),
        of=editor.agent,
    )
    return _show(editor, plan=plan)


def _store(editor: Editor) -> HttpResponse:
    note = _note(editor)
    stored, plan = carry_out_import(
        editor.file,
        by=editor.request.user,
        known_tools=known_tool_names(),
        base=editor.request.POST.get("base", ""),
        of=editor.agent,
        note=note,
    )
    if not plan.changes_something:
        messages.success(editor.request, gettext("Nothing has changed."))
        return _back(editor)
    return _published(editor, stored)


def _restore(editor: Editor) -> HttpResponse:
    number = editor.request.POST.get("number", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise InvalidRequest(gettext("Choose a version."))
    restored = restore_version(
        editor.agent.pk,
        int(number),
        by=editor.request.user,
        known_tools=known_tool_names(),
        matches=f'"{editor.request.POST.get("tag", "")}"',
        note=_note(editor) or f"Restored version {number}.",
    )
    return _published(editor, restored)


def _try(editor: Editor) -> HttpResponse:
    """Start a run with the submitted form or file, of which nothing is stored for other runs."""
    post = editor.request.POST
    message = post.get("message", "").replace("\r\n", "\n")
    try:
        draft = _draft(editor)
        run_request = RunRequest(
            editor.agent.slug, message, source="draft" if draft else "web", draft=draft
        )
        run = create_run(
            run_request, owner=editor.request.user, idempotency_key=post.get("key") or None
        ).run
    except ServiceError as error:
        if not _wants_json(editor):
            raise
        return JsonResponse(
            {"problem": visible(error.message)}, status=507 if isinstance(error, NoSpace) else 400
        )
    if _wants_json(editor):
        return JsonResponse({"url": reverse("web:run", args=[run.pk])}, status=201)
    messages.success(
        editor.request, gettext("The run has started. It is in the list beside the form.")
    )
    # A redirect would lose the draft.
    return _show(editor, message="") if draft else _back(editor)


def _draft(editor: Editor) -> dict[str, Any] | None:
    """Return the submitted definition for one run; None if it is the published one."""
    agent = editor.agent
    if editor.is_file:
        text = editor.file
    else:
        editor.check_fields()
        form = editor.bound
        if form is None:
            return None
        if not form.is_valid():
            name, texts = next(iter(form.errors.items()))
            raise InvalidRequest(f"{label_of(name)}: {texts[0]}")
        text = with_fields(agent, form.values())
    return draft_spec(text, by=editor.request.user, known_tools=known_tool_names(), of=agent)


def _wants_json(editor: Editor) -> bool:
    return editor.request.headers.get("Accept") == "application/json"


def _back(editor: Editor) -> HttpResponse:
    place = reverse("web:agent-settings", args=[editor.agent.slug])
    return redirect(f"{place}?{urlencode({'section': editor.section})}")


def _show(
    editor: Editor,
    *,
    error: ServiceError | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """Show the page with the person's input, and the problem."""
    is_stale = isinstance(error, Conflict) and error.code == "stale"
    context = page_context(editor, is_stale=is_stale)
    if context["may_change"]:
        context |= more
        if editor.section == FILE:
            context |= file_context(editor, plan=more.get("plan"))
    if error is not None:
        status = 409 if isinstance(error, StaleDefinition) else error.http_status
        context["problem"] = "" if editor.shows_problem(error) else error.message
        if is_stale and context["may_change"]:
            context |= {"is_stale": True, "problem": ""}
            # The next attempt also names the version that was seen, not the current one.
            context |= editor.conflict_context()
    return render(editor.request, "vel_agent_editor/editor.html", context, status=status)


urlpatterns = [
    path("agents/<slug:slug>/settings/", agent_settings, name="agent-settings"),
]

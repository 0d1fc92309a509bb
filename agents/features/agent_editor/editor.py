"""One request of the page: the form with the person's input, and the context of the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core import signing
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.agent_files.shape import file_fields
from agents.doors.admin.text import pretty
from agents.doors.agent_form.checks import at_its_field
from agents.doors.agent_form.labels import label_of
from agents.doors.web.pages import PersonRequest
from agents.engine.prompt.token_count import estimate_tokens
from agents.features.agent_editor.form import DefinitionForm, sections, why_not
from agents.features.agent_editor.history import changes_since, history_page
from agents.features.agent_editor.rehearsal import DAYS, POLICY_FIELDS
from agents.features.agent_editor.schema_examples import EXAMPLES
from agents.hidden_text import visible
from agents.ids import new_id
from agents.models import Agent
from agents.prompt_variables import CONTEXT, NAMES
from agents.selectors.attention import own_runs
from agents.selectors.visible import agents_for
from agents.services.agent_definitions.definitions import definition_tag, whole_definition
from agents.services.agent_definitions.files import (
    ImportPlan,
    InvalidAgentFile,
    present_definition,
)
from agents.services.agent_definitions.rights import check_may_change, may_change_definition
from agents.services.errors import InvalidRequest, NotFound, ServiceError

FILE = "file"
VERSIONS = "versions"
OTHERS = {FILE: _("As a file"), VERSIONS: _("Versions")}
"""Sections without fields."""
RECENT_RUNS = 5
FILE_ACTIONS = ("preview", "store")
SEEN_SALT = "agents.features.agent_editor.seen."
TRY = "try"
TRY_FORMS = {FILE: "agent-file", VERSIONS: "try-published"}
"""The ids of the forms that a test run sends, for sections without fields."""


@dataclass
class Item:
    """A field of the form, or the value of a field that the person cannot change."""

    name: str
    label: str
    field: Any = None
    shown: str = ""
    reason: str = ""
    kind: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it is a choice without choices."""
        choices = getattr(self.field.field, "choices", None) if self.field else None
        return self.kind == "own" and choices is not None and not list(choices)


@dataclass
class Section:
    """A tab with its fields."""

    slug: str
    title: str
    items: list[Item]
    is_current: bool
    is_sent: bool
    """Whether the form sends the fields: those of the current tab, and those with input."""

    @property
    def has_errors(self) -> bool:
        return any(item.field is not None and item.field.errors for item in self.items)


class Editor:
    """One request of the agent editor: the submitted form of a section, or of the agent's file.

    It compares the person's input with the values that the page showed, and with later changes of
    other people. Values are read from `request` at their first use. Some properties raise errors:
    see each of them.
    """

    def __init__(self, agent: Agent, request: PersonRequest) -> None:
        self.agent = agent
        self.request = request
        known = [*sections(), *OTHERS]
        chosen = (request.POST if request.method == "POST" else request.GET).get("section", "")
        self.section = chosen if chosen in known else known[0]
        if self.is_file:
            self.section = FILE

    @cached_property
    def edited(self) -> list[str]:
        """The fields that the submitted form has."""
        return self.request.POST.getlist("edited")

    @cached_property
    def bound(self) -> DefinitionForm | None:
        """The submitted form; None without fields."""
        form = DefinitionForm(self.agent, self.edited, self.request.POST) if self.edited else None
        return form if form is not None and form.fields else None

    @cached_property
    def seen(self) -> dict[str, Any]:
        """The values that the submitted form had before the person's input.

        Raises `InvalidRequest` if the page of this agent has not made them.
        """
        try:
            found = signing.loads(self.request.POST.get("seen", ""), salt=SEEN_SALT + self.agent.pk)
        except signing.BadSignature:
            raise InvalidRequest(
                gettext("The form is not complete: open the page again.")
            ) from None
        return dict(found)

    @cached_property
    def own_changes(self) -> set[str]:
        """The fields that the person has changed, in comparison with those that the form had."""
        present = {**whole_definition(self.agent), **self.seen}
        form = DefinitionForm(self.agent, self.edited, self.request.POST, present)
        return set(form.changed_data)

    @property
    def shown(self) -> DefinitionForm | None:
        """The submitted form, if the page shows its input again."""
        return self.bound if self.request.method == "POST" and not self.is_file else None

    def check_fields(self) -> None:
        """Raise `NotAllowed` if the submitted form has a field that the person cannot change.

        It comes before the checks of values: these tell which names exist.
        """
        user = self.request.user
        check_may_change(user, self.agent, [name for name in self.edited if name in file_fields()])

    def bound_policy(self) -> DefinitionForm | None:
        """Return the submitted form with the fields of the policy only; None without them."""
        names = [name for name in self.edited if name in POLICY_FIELDS]
        return DefinitionForm(self.agent, names, self.request.POST) if names else None

    @cached_property
    def file(self) -> str:
        return self.request.POST.get("file", "").replace("\r\n", "\n")

    @property
    def is_file(self) -> bool:
        """Whether the submitted form is the agent's file."""
        action, has_file = self.request.POST.get("action"), "file" in self.request.POST
        return action in FILE_ACTIONS or (action == TRY and has_file)

    def take_problems(self, error: InvalidAgentFile) -> None:
        """Put the problems of the service at the fields of the form."""
        self._placed: set[int] = set()
        if self.bound is None or self.is_file:
            return
        for at, each in enumerate(error.problems):
            field, reason = at_its_field(f"{each.place}: {each.message}")
            if field in self.bound.fields:
                self.bound.add_error(field, reason)
                self._placed.add(at)

    def shows_problem(self, error: ServiceError) -> bool:
        """Return whether all problems of `error` are at their fields."""
        return isinstance(error, InvalidAgentFile) and len(self._placed) == len(error.problems)

    @property
    def seen_version(self) -> int:
        """The version that the person has seen; 0 if it is not valid."""
        number = self.request.POST.get("version", "")
        return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0

    def conflict_context(self) -> dict[str, Any]:
        """Return the changes of others since the version that the person has seen."""
        number = self.seen_version
        try:
            others = changes_since(self.agent, number) if number else []
        except NotFound:
            others = []
        return {
            "others": others,
            "tag": self.request.POST.get("tag", ""),
            "seen_version": number or self.agent.version,
            "base": self.request.POST.get("base", ""),
            "can_overwrite": self.shown is not None,
            "clashes": self._clashes() if self.shown is not None else [],
        }

    def _clashes(self) -> list[str]:
        """Return the labels of the fields that the person and others have changed."""
        present = whole_definition(self.agent)
        names = [name for name in file_fields() if name in self.own_changes]
        return [label_of(name) for name in names if self.seen.get(name) != present[name]]


def page_context(editor: Editor, *, is_stale: bool = False) -> dict[str, Any]:
    """Return the context of the page, except its file.

    `is_stale`: others have changed the definition. Then only the fields that the person has changed
    keep the input, and the rest have their present values.
    """
    agent, user = editor.agent, editor.request.user
    agent.refresh_from_db()
    may_change = may_change_definition(user, agent)
    context: dict[str, Any] = {
        "agent": agent,
        "may_use": agents_for(user).filter(pk=agent.pk).exists(),
        "may_change": may_change,
    }
    if not may_change:
        return context
    # Before the values: a change in between is a conflict then, and is not lost.
    context["current"] = context["tag"] = definition_tag(agent)
    context["seen_version"] = agent.version
    if editor.shown is not None:
        # Input in a definition of before can only be published after its conflict was shown.
        context["tag"] = editor.request.POST.get("tag", "")
        context["seen_version"] = editor.seen_version or agent.version
    present = whole_definition(agent)
    reasons = {
        name: why_not(user, agent, name) for _, names in sections().values() for name in names
    }
    shown = _sections(editor, present, reasons, is_stale=is_stale)
    context |= {
        "sections": shown,
        "others_tabs": [(slug, title, slug == editor.section) for slug, title in OTHERS.items()],
        "section": editor.section,
        "try_form": TRY_FORMS.get(editor.section, "definition"),
        "can_rehearse": any(
            item.field is not None
            for each in shown
            for item in each.items
            if item.name in POLICY_FIELDS
        ),
        "seen": _seen(editor, present, reasons, is_stale=is_stale),
        "note": editor.request.POST.get("note", ""),
        "days": editor.request.POST.get("days", str(DAYS)),
        "schema_examples": [(gettext(name), pretty(schema)) for name, schema in EXAMPLES.items()],
        "variables": [*NAMES, f"{CONTEXT}NAME"],
        "tokens": estimate_tokens(agent.system_prompt),
        "message": editor.request.POST.get("message", ""),
        # An idempotency key: a form that is submitted twice starts one run.
        "key": new_id(),
        "runs": own_runs(user).filter(thread__agent=agent)[:RECENT_RUNS],
    }
    if editor.section == VERSIONS:
        found, versions = history_page(agent, editor.request.GET.get("page", ""))
        context |= {"page": found, "versions": versions}
    return context


def _seen(
    editor: Editor, present: Mapping[str, Any], reasons: Mapping[str, str], *, is_stale: bool
) -> str:
    """Return the signed values of the form without the person's input, see `Editor.seen`."""
    values = {name: present[name] for name, why in reasons.items() if not why}
    if editor.shown is not None and not is_stale:
        try:
            seen = editor.seen
        except InvalidRequest:
            return ""
        values |= {name: seen[name] for name in editor.shown.fields if name in {*values} & {*seen}}
    return signing.dumps(values, salt=SEEN_SALT + editor.agent.pk, compress=True)


def _sections(
    editor: Editor, present: Mapping[str, Any], reasons: Mapping[str, str], *, is_stale: bool
) -> list[Section]:
    agent, bound = editor.agent, editor.shown
    sent = set(bound.fields) if bound is not None else set()
    if is_stale and bound is not None:
        sent &= editor.own_changes
    others = [name for name, why in reasons.items() if not why and name not in sent]
    rest = DefinitionForm(agent, others, present=present)
    found = []
    for slug, (title, names) in sections().items():
        items = []
        for name in names:
            label = label_of(name)
            if reasons[name]:
                shown = _shown(present[name])
                items.append(Item(name, label, shown=shown, reason=reasons[name]))
            else:
                form = bound if bound is not None and name in sent else rest
                items.append(Item(name, label, form[name], kind=_kind(form[name])))
        is_current = slug == editor.section
        is_sent = is_current or any(name in sent for name in names)
        found.append(Section(slug, title, items, is_current, is_sent))
    return found


def _kind(field: Any) -> str:
    kind = field.widget_type
    return "own" if field.field.widget.id_for_label("x") == "" else str(kind)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value in (None, "", [], {}):
        return "–"
    return visible(value if isinstance(value, str) else pretty(value))


def file_context(editor: Editor, *, plan: ImportPlan | None) -> dict[str, Any]:
    """Return the context of the agent's file, with the preview of a submitted one."""
    text, base = present_definition(Agent.objects.get(pk=editor.agent.pk))
    context: dict[str, Any] = {"file": editor.file if editor.is_file else text, "base": base}
    if plan is not None:
        context["plan"] = plan
        context["lines"] = [(line[:1], visible(line)) for line in plan.diff[2:]]
    return context

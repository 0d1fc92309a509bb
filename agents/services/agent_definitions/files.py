"""Export and import of agents as YAML files. An import is one save, checked like the form."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction

from agents.agent_files.reading import BadFile, FileProblem
from agents.agent_files.shape import default_of, file_fields
from agents.agent_files.writing import write_document
from agents.kernel.options import json_value
from agents.kernel.relations import OwnRows, relations
from agents.models import Agent
from agents.review.matching import LINE_STEPS, Steps, unified_lines
from agents.services.agent_definitions.actions import current_version, save_agent
from agents.services.agent_definitions.file_checks import (
    at_its_line,
    check_names_in_file,
    read_agent_file,
)
from agents.services.agent_definitions.rights import (
    check_may_change,
    check_may_define,
    check_may_define_some,
    check_may_find,
    check_may_set,
    may_read_definition,
)
from agents.services.agent_definitions.script_files import check_script
from agents.services.errors import Conflict, InvalidRequest, NotAllowed
from agents.settings import DataSettings
from agents.spec import AgentSpec
from sandbox.toolboxes.find import toolbox_names

CONTEXT_LINES = 3
IMPORTED = "Imported from a file."


class InvalidAgentFile(InvalidRequest):
    """A file that cannot be imported. `problems` contain the lines."""

    code = "invalid_file"

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The effect of an import: the agent's file before it and after it.

    `base` identifies the agent's present state for `carry_out_import`.
    """

    slug: str
    is_new: bool
    before: str
    after: str
    base: str

    @property
    def changes_something(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> list[str]:
        """The lines of a unified diff. Their texts are untrusted: escape them for display."""
        old, new = self.before.splitlines(), self.after.splitlines()
        hunks = list(unified_lines(old, new, Steps(LINE_STEPS), CONTEXT_LINES))
        if not hunks:
            return []
        named = "nothing" if self.is_new else f"{self.slug} as it is"
        return [f"--- {named}", f"+++ {self.slug} as imported", *hunks]


def export_agent(agent: Agent, *, by: AbstractBaseUser) -> str:
    """Return the agent as a file. The same agent always gives the same bytes.

    Raises `NotAllowed`.
    """
    if not may_read_definition(by, agent):
        raise NotAllowed("Only the owner of an agent and users who can view agents can export it.")
    return write_document(file_data(agent))


def present_definition(agent: Agent) -> tuple[str, str]:
    """Return the present file of a stored agent, and the `base` of a change of it."""
    text = write_document(file_data(agent))
    return text, _digest(text)


def with_fields(agent: Agent, values: Mapping[str, Any]) -> str:
    """Return the file of a stored agent with these values instead of the stored ones."""
    data = file_data(agent) | dict(values)
    known = {name: data[name] for name in file_fields() if name in data}
    return write_document(
        {name: value for name, value in known.items() if value != default_of(name)}
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def plan_import(
    text: str, *, by: AbstractBaseUser, known_tools: Collection[str], of: Agent | None = None
) -> ImportPlan:
    """Return the changes that an import of `text` by `by` would make, without storing them.

    `known_tools` are the tools that an agent may name. With `of`, the file must be of this agent.
    Raises `InvalidAgentFile` and `NotAllowed`.
    """
    try:
        with transaction.atomic():
            raise _Rehearsed(_import(text, by, known_tools, of)[1])
    except _Rehearsed as done:
        return done.plan


@transaction.atomic
def carry_out_import(
    text: str,
    *,
    by: AbstractBaseUser,
    known_tools: Collection[str],
    base: str | None = None,
    of: Agent | None = None,
    note: str = IMPORTED,
) -> tuple[Agent, ImportPlan]:
    """Create or change the agent that `text` names, completely or not at all.

    A change is one new version. `base` is that of the plan that `by` has seen; None: any state.
    `note` is for the audit log. Raises `Conflict` (code `stale`) if the agent has changed since,
    and the exceptions of `plan_import`.
    """
    agent, plan = _import(text, by, known_tools, of, note)
    if base is not None and base != plan.base:
        raise Conflict("The agent has changed. Reload it and try again.", code="stale")
    return agent, plan


def draft_spec(
    text: str, *, by: AbstractBaseUser, known_tools: Collection[str], of: Agent
) -> dict[str, Any] | None:
    """Return the definition that a new run would have after an import of `text`; None: no other.

    The import has all checks, including the rights of `by`, and stores nothing. The other arguments
    and the exceptions are those of `plan_import`.
    """
    published = current_version(of).spec
    try:
        with transaction.atomic():
            raise _Drafted(current_version(_import(text, by, known_tools, of)[0]).spec)
    except _Drafted as done:
        return None if AgentSpec.completed(published) == done.spec else done.spec


class _Drafted(Exception):
    """Rolls back the import of a draft, and carries its definition."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        super().__init__()
        self.spec = AgentSpec.completed(spec)


class _Rehearsed(Exception):
    """Rolls back a rehearsed import, and carries its plan."""

    def __init__(self, plan: ImportPlan) -> None:
        super().__init__()
        self.plan = plan


def _import(
    text: str,
    by: AbstractBaseUser,
    known_tools: Collection[str],
    of: Agent | None,
    note: str = IMPORTED,
) -> tuple[Agent, ImportPlan]:
    check_may_define_some(by)
    try:
        file = read_agent_file(text)
        data = file.data
        slug = data["slug"]
        if of is not None and slug != of.slug:
            problem = f"this is the file of another agent; here it must be {of.slug!r}."
            raise BadFile([file.problem(("slug",), problem)])
        agent = Agent.objects.select_for_update().filter(slug=slug).first()
        check_may_find(by, agent)
        is_new = agent is None
        if agent is None:
            check_may_define(by, is_new=True, slug=slug)
            agent = Agent(slug=slug, owner_id=by.pk)
        present = file_data(agent)
        changed = [
            name
            for name in file_fields()
            if data.get(name, default_of(name)) != present.get(name, default_of(name))
        ]
        if is_new:
            check_may_set(by, changed)
        else:
            check_may_change(by, agent, changed)
        check_names_in_file(
            file,
            present,
            known_tools=known_tools,
            known_toolboxes=toolbox_names(DataSettings.now().toolboxes),
        )
    except BadFile as error:
        raise InvalidAgentFile(error.problems) from None
    before = "" if is_new else write_document(present)
    try:
        with transaction.atomic():
            _check_scripts(data, present, changed)
            _save(agent, data, changed, by, note)
    except ValidationError as error:
        messages = [f"{name}: {texts[0]}" for name, texts in error.message_dict.items()]
        raise InvalidAgentFile([at_its_line(file, each) for each in messages]) from None
    except InvalidRequest as error:
        raise InvalidAgentFile([at_its_line(file, error.message)]) from None
    after = write_document(file_data(Agent.objects.get(pk=agent.pk)))
    return agent, ImportPlan(slug, is_new, before, after, _digest(before))


def _check_scripts(data: dict[str, Any], present: dict[str, Any], changed: list[str]) -> None:
    """Check scripts that are new. The agent's present ones are not checked again."""
    if "model" in changed:
        check_script(data.get("model", ""))
    has = {each.get("model") for each in present.get("subagents", ())}
    for each in data.get("subagents", ()):
        if each.get("model") not in has:
            check_script(each.get("model", ""), of=each["name"])


def _save(
    agent: Agent, data: dict[str, Any], changed: list[str], by: AbstractBaseUser, note: str
) -> None:
    """Store all changes in one save. Fields that the file leaves unchanged are not written."""
    fill_fields(agent, data)
    agent.full_clean(exclude=["owner"])
    has = {name: data.get(name, []) for name in changed}
    save_agent(
        agent,
        by_id=by.pk,
        groups=groups_named("groups", has["groups"]) if "groups" in has else None,
        approver_groups=groups_named("approver_groups", has["approver_groups"])
        if "approver_groups" in has
        else None,
        note=note,
        related=related_rows(agent, has),
    )


NAMED = ("groups", "approver_groups")
"""Fields of the file that name other rows, in addition to the relations of features."""


def file_data(agent: Agent) -> dict[str, Any]:
    """Return the data of the agent's file: in the order of `file_fields`, without defaults."""
    stored = not agent._state.adding
    of_features = {relation.name: relation for relation in relations()}
    data: dict[str, Any] = {}
    for name in file_fields():
        value: Any = []
        relation = of_features.get(name)
        if isinstance(relation, OwnRows):
            rows = sorted(relation.rows(agent), key=lambda row: str(row.name))
            value = [relation.in_file(row) for row in rows]
        elif relation is not None:
            value = relation.names(agent) if stored else []
        elif name in NAMED:
            value = _names(agent, name) if stored else []
        else:
            value = json_value(getattr(agent, name))
        if value != default_of(name):
            data[name] = value
    return data


def fill_fields(agent: Agent, data: Mapping[str, Any]) -> None:
    """Set the agent's own fields from a file's checked data, without storing them."""
    rows = {*NAMED, *(relation.name for relation in relations())}
    for name in file_fields():
        if name not in rows:
            setattr(agent, name, data.get(name, default_of(name)))


def related_rows(agent: Agent, data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the rows of features that a file's checked data names, by relation.

    Raises `InvalidRequest` for an unknown name.
    """
    found = {}
    for relation in relations():
        if isinstance(relation, OwnRows) and relation.name in data:
            found[relation.name] = relation.from_file(data[relation.name])
        elif relation.name in data:
            known, names = relation.named(agent), data[relation.name]
            _require(relation.name, names, known)
            found[relation.name] = [known[name] for name in names]
    return found


def groups_named(field: str, names: list[str]) -> list[Group]:
    """Return the groups with these names.

    Raises `InvalidRequest` for an unknown name, with a message that starts with `field`.
    """
    there = {group.name: group for group in Group.objects.all()}
    _require(field, names, there)
    return [there[name] for name in names]


def _require(field: str, names: list[str], there: Mapping[str, Any]) -> None:
    for at, name in enumerate(names):
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise InvalidRequest(f"{field}.{at}: there is no {name!r} here; there are: {known}.")


def _names(agent: Agent, field: str) -> list[str]:
    return sorted(getattr(agent, field).values_list("name", flat=True))

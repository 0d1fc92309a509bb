"""Define agents. Each change creates a new version; runs keep the version of their start."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import Group
from django.db import transaction
from pydantic import ValidationError

from agents.conditions import problem_of
from agents.kernel.features import entries
from agents.kernel.options import (
    AgentOptions,
    json_value,
    option_classes,
    option_fields,
    part_of,
    validated_options,
    without_known,
)
from agents.kernel.proposals import ProposalKind, proposal_kinds
from agents.kernel.relations import AgentRelation, relations
from agents.models import Agent, AgentVersion
from agents.providers import registry
from agents.providers.stored_keys import refresh_stored_keys, stored_key
from agents.services.agent_definitions.prompt_values import check_new_prompts
from agents.services.agent_definitions.rights import check_may_change
from agents.services.audit import Change, changes_between, record
from agents.services.errors import InvalidRequest
from agents.settings import ModelSettings
from agents.spec import AgentSpec, InterruptRule, PolicyRule
from agents.structured_output.schema import SchemaRefused, check_schema
from sandbox.linux.egress.rules import RuleError, parse_allowlist

SCRIPTED = "scripted"


def default_provider() -> str:
    """Return the settings' provider, else anthropic if configured, else the offline script."""
    settings = ModelSettings.now()
    if settings.PROVIDER:
        return settings.PROVIDER
    is_configured = settings.ANTHROPIC_API_KEY or settings.ANTHROPIC_BASE_URL
    return "anthropic" if is_configured or stored_key("anthropic") else SCRIPTED


def default_model(provider: str) -> str:
    """Return the model of an agent that names none.

    This is the model of the settings if it belongs to `provider`, else the provider's own default.
    """
    of_settings = ModelSettings.now().MODEL if provider == default_provider() else ""
    return of_settings or registry.default_model(provider)


def build_spec(agent: Agent, related: Mapping[str, Sequence[Any]] | None = None) -> AgentSpec:
    """Return the agent's present state as a new run would pin it.

    The rows in `related`, by relation, replace those of the agent. Raises `InvalidRequest` with the
    name of the invalid field.
    """
    provider = agent.provider or default_provider()
    _check_allowed_hosts(agent)
    # Their effect depends on settings and rows, which the modules of the options cannot access.
    pinned = {
        "provider": provider,
        "model": agent.model or default_model(provider),
        "output_schema": schema_text(agent.output_schema),
        **{
            name: value
            for relation in relations()
            for name, value in relation.fields(_rows_of(agent, relation, related or {})).items()
        },
    }
    try:
        definition = validated_options(option_values(agent))
        parts = [part_of(definition, kind) for kind in option_classes()]
        values = {name: value for part in parts for name, value in part.pinned(agent).items()}
        spec = AgentSpec(
            **(without_known(agent.definition) | values | pinned),
            name=agent.name,
            slug=agent.slug,
            toolkit=agent.toolkit,
            needs=_needs_of(agent, parts),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(f"{location}: {first['msg']}", code="invalid_agent") from None
    check_policy(spec)
    for part in parts:
        part.check(spec)
    for check in entries("definition_checks", "DEFINITION_CHECKS"):
        check(spec)
    return spec


def option_values(agent: Agent) -> dict[str, Any]:
    """Return the options of `agent` as JSON data, with their defaults."""
    return {name: json_value(getattr(agent, name)) for name in option_fields()}


def _rows_of(
    agent: Agent, relation: AgentRelation, related: Mapping[str, Sequence[Any]]
) -> Sequence[Any]:
    """Return the rows in `related`, else the agent's own."""
    return related[relation.name] if relation.name in related else relation.rows(agent)


def _needs_of(agent: Agent, parts: Iterable[AgentOptions]) -> dict[str, str]:
    """Return `AgentSpec.needs`.

    Options of a feature that is not installed are kept, with their needs.
    """
    needs: dict[str, str] = {}
    if missing := without_known(agent.definition):
        latest = agent.versions.order_by("-number").first()
        stored = {} if latest is None else latest.spec.get("needs", {})
        needs = {name: option for name, option in stored.items() if option in missing}
    for options in parts:
        needs |= options.needed_middleware()
    return needs


def _check_allowed_hosts(agent: Agent) -> None:
    try:
        if not isinstance(agent.allowed_hosts, list | tuple):
            raise RuleError('Give a list of hosts, as ["pypi.org", "*.example.org"].')
        parse_allowlist(agent.allowed_hosts)
    except RuleError as error:
        raise InvalidRequest(f"allowed_hosts: {error}", code="invalid_agent") from None


@transaction.atomic
def save_agent(
    agent: Agent,
    *,
    by_id: int | None = None,
    groups: Sequence[Group] | None = None,
    approver_groups: Sequence[Group] | None = None,
    related: Mapping[str, Sequence[Any]] | None = None,
    note: str = "",
) -> Agent:
    """Store the agent and, if the definition that runs use has changed, a new version of it.

    The caller checks the person's rights (`guarded_fields`).

    Args:
        agent: The agent with its new fields.
        by_id: The id of the user who changes it, for the version and the audit log.
        groups: The groups whose members may use it. None: unchanged.
        approver_groups: The groups whose members decide its requests. None: unchanged.
        related: Rows of features, by the name of the relation. Other relations do not change.
        note: A text for the audit log.

    Raises:
        InvalidRequest: A field or a related row is invalid.
    """
    known, given = {relation.name: relation for relation in relations()}, related or {}
    for name, rows in given.items():
        known[name].check(agent, rows)
    if not agent.provider:
        refresh_stored_keys()  # they can change the default provider
    spec = build_spec(agent, given)
    # Locked before reading: the row cannot change between this state and the new one.
    stored = _lock(agent.pk)
    before = agent_state(stored) if stored else None
    agent.save()
    if groups is not None:
        agent.groups.set(groups)
    if approver_groups is not None:
        agent.approver_groups.set(approver_groups)
    for name, rows in given.items():
        known[name].set(agent, rows)
    locked = _lock(agent.pk)
    assert locked is not None
    latest = locked.versions.order_by("-number").first() if stored else None
    dumped = spec.model_dump(mode="json")
    if latest is None or AgentSpec.completed(latest.spec) != dumped:
        check_new_prompts(dumped, latest.spec if latest else None)
        number = latest.number + 1 if latest else 1
        AgentVersion.objects.create(agent=locked, number=number, spec=dumped, created_by_id=by_id)
        Agent.objects.filter(pk=agent.pk).update(version=number)
        agent.version = locked.version = number
    arguments = {
        **{name: given.get(name) for name in known},
        "groups": groups,
        "approver_groups": approver_groups,
    }
    empty = () if stored else [name for name, rows in arguments.items() if not rows]
    changes = changes_between(before, agent_state(locked, empty=empty))
    if changes:
        action = "agent.created" if before is None else "agent.changed"
        record(action, agent, name=agent.slug, by=by_id, changes=changes, note=note)
    return agent


def _lock(agent_id: str) -> Agent | None:
    """Lock the row of an agent until the transaction ends. Returns None if it is not stored."""
    rows = Agent.objects.select_for_update(of=("self",)).select_related("owner")
    return rows.filter(pk=agent_id).first()


@transaction.atomic
def set_active(agent_id: str, active: bool, *, by: AbstractBaseUser) -> bool:
    """Allow or stop new runs of the agent. Returns False if nothing changed.

    Raises `NotAllowed`, and `Agent.DoesNotExist` for an unknown id.
    """
    agent = Agent.objects.select_for_update().get(pk=agent_id)
    check_may_change(by, agent, ("is_active",))
    if agent.is_active == active:
        return False
    agent.is_active = active
    agent.save(update_fields=["is_active", "updated_at"])
    changes: dict[str, Change] = {"is_active": (not active, active)}
    record("agent.changed", agent, name=agent.slug, by=by, changes=changes)
    return True


@transaction.atomic
def delete_agent(agent: Agent) -> None:
    """Remove an agent that was never used. Raises `ProtectedError` if it has runs."""
    stored = Agent.objects.select_related("owner").filter(pk=agent.pk).first()
    state = agent_state(stored) if stored else {}
    changes = {name: (value, None) for name, value in state.items()}
    record("agent.deleted", agent, name=agent.slug, changes=changes)
    agent.delete()


def current_version(agent: Agent) -> AgentVersion:
    """Return the version that a new run would pin. Creates it if the settings have changed.

    Raises `InvalidRequest` if the agent is not valid with the present settings.
    """
    if not agent.provider:
        refresh_stored_keys()
    latest = agent.versions.order_by("-number").first()
    spec = build_spec(agent).model_dump(mode="json")
    if latest is not None and AgentSpec.completed(latest.spec) == spec:
        return latest
    save_agent(agent, note="The settings of Vel have changed since its last version.")
    return agent.versions.get(number=agent.version)


def schema_text(schema: object) -> str:
    """Return `schema` in the form of an agent's version, empty for None. Raises `InvalidRequest`.

    The text has several lines, which keeps diffs of two versions readable.
    """
    if schema is None:
        return ""
    try:
        check_schema(schema)
    except SchemaRefused as error:
        raise InvalidRequest(f"output_schema: {error}", code="invalid_output_schema") from None
    return json.dumps(schema, ensure_ascii=False, indent=2)


def check_policy(spec: AgentSpec) -> None:
    """Raise `InvalidRequest` (code `invalid_agent`) if a rule or an `interrupt_on` is impossible.

    The message starts with the field's name.
    """
    for location, problem in _problems(spec):
        raise InvalidRequest(f"{location}: {problem}", code="invalid_agent")


def _problems(spec: AgentSpec) -> Iterable[tuple[str, str]]:
    for index, rule in enumerate(spec.approval_rules):
        location = f"approval_rules.{index}"
        wrong = problem_of(rule.when)
        if wrong is not None:
            yield f"{location}.when.{wrong[0]}", wrong[1]
        for kind in proposal_kinds().values():
            if rule.action == "allow" and _means(rule, kind):
                yield f"{location}.action", kind.no_rule
        if rule.action == "ask":
            yield from _ask_problems(f"{location}.ask", rule.ask, spec)
        elif rule.ask != InterruptRule():
            yield f"{location}.ask", 'how it is asked goes with the action "ask" only.'
    for tool, interrupt_rule in spec.interrupt_on.items():
        location = f"interrupt_on.{tool}"
        for kind in proposal_kinds().values():
            if interrupt_rule is False and tool == kind.rule:
                yield location, kind.no_rule
        if isinstance(interrupt_rule, InterruptRule):
            yield from _ask_problems(location, interrupt_rule, spec)


def _means(rule: PolicyRule, kind: ProposalKind) -> bool:
    """Return whether the rule is about proposals of this kind only."""
    return fnmatchcase(kind.rule, rule.tool) and not any(
        fnmatchcase(name, rule.tool) for name in kind.unlike
    )


def _ask_problems(
    location: str, interrupt_rule: InterruptRule, spec: AgentSpec
) -> Iterable[tuple[str, str]]:
    decisions = set(interrupt_rule.allowed_decisions)
    needed = interrupt_rule.approvals_needed or spec.approvals_needed
    if not decisions:
        yield (
            f"{location}.allowed_decisions",
            "must not be empty: choose from approve, edit, reject.",
        )
    elif needed > 1 and "edit" in decisions and "approve" not in decisions:
        yield (
            f"{location}.allowed_decisions",
            "needs approve: with two approvers, edits are refused, because the first has not seen "
            "the edited input.",
        )


_NOT_TOLD = {"id", "created_at", "updated_at"}


def agent_state(agent: Agent, *, empty: Collection[str] = ()) -> dict[str, object]:
    """Return the stored values of `agent`, a row as the database holds it, by field.

    The relations and groups in `empty` are not queried, because they have no rows.
    """
    state: dict[str, Any] = {
        field.name: getattr(agent, field.attname)
        for field in Agent._meta.concrete_fields
        if field.name not in _NOT_TOLD
    }
    # Options by their own names, like the fields that have a column.
    state |= {**{name: getattr(agent, name) for name in option_fields()}, **state.pop("definition")}
    state["owner"] = agent.owner.get_username() if agent.owner else None
    for relation in relations():
        state[relation.name] = relation.state(
            () if relation.name in empty else list(relation.rows(agent))
        )
    for name in ("groups", "approver_groups"):
        rows = [] if name in empty else getattr(agent, name).values_list("name", flat=True)
        state[name] = sorted(rows)
    return state

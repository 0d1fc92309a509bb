"""Export and import of agents as YAML."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group

from agents.agent_files.reading import BadFile
from agents.features.databases.models import DatabaseConnection
from agents.features.subagents.models import Subagent
from agents.middleware.registry import known_tool_names
from agents.models import Agent, AgentVersion, AuditEntry
from agents.secret_text import SecretText
from agents.services.agent_definitions.actions import save_agent
from agents.services.agent_definitions.file_checks import MOST_PROBLEMS, read_agent_file
from agents.services.agent_definitions.files import (
    InvalidAgentFile,
    carry_out_import,
    export_agent,
    plan_import,
)
from agents.services.agent_definitions.rights import RESERVED_SLUGS
from agents.services.agent_definitions.templates import BUILDER_SLUG
from agents.services.demo import DEMO_SLUG
from agents.services.errors import Conflict, NotAllowed
from tests.agents.admin import rows

pytestmark = pytest.mark.django_db

TOOLS = known_tool_names()
SMALL = "name: Helper\nslug: helper\n"


def test_a_file_with_many_wrong_rules_reports_as_many_problems_as_it_may() -> None:
    rules = "".join(f"  tool_{number}: {{nope: 1}}\n" for number in range(MOST_PROBLEMS))
    with pytest.raises(BadFile) as caught:
        read_agent_file(f"{SMALL}interrupt_on:\n{rules}")
    assert len(caught.value.problems) == MOST_PROBLEMS


def shop() -> DatabaseConnection:
    url = SecretText.seal("sqlite:////nowhere")
    return DatabaseConnection.objects.create(name="shop", url=url)


def full_agent() -> Agent:
    """Create an agent without default values."""
    groups = [Group.objects.create(name=name) for name in ("team: a", "no")]
    database = shop()
    agent = Agent(
        name="Full: ünïcode",
        slug="full",
        description="of everything",
        is_active=False,
        system_prompt="You are {{user.name}}'s.\n\n  - indented\n\ttabbed \n",
        provider="anthropic",
        model="claude-sonnet-4-5-20250929",
        fallbacks=[{"provider": "anthropic", "model": "claude-haiku-4-5"}],
        max_output_tokens=1,
        thinking="adaptive",
        effort="high",
        tools=["ls", "execute"],
        builtin_skills=False,
        skill_mode="system_prompt",
        interrupt_on={"execute": {"allowed_decisions": ["approve"]}, "ls": False},
        approval_rules=[{"tool": "exec*", "when": {"command": "rm .*"}, "action": "deny"}],
        approvals_needed=2,
        self_approval=False,
        approval_expiry=60,
        on_stuck="end",
        tool_retries=[{"tool": "ls", "attempts": 3, "backoff": 0.5}],
        network="allowlist",
        allowed_hosts=["*.example.org"],
        command_timeout=9,
        integrations=["slack"],
        general_subagent=False,
        background_subagents=True,
        max_concurrent_subagents=7,
        subagent_depth=2,
        output_schema={"type": "object", "properties": {"z": {"type": "number"}, "a": {}}},
        output_repairs=0,
        max_turns=3,
        max_tokens=10**12,
        max_cost=Decimal("0.000001"),
        max_seconds=1,
        everyone=True,
    )
    helpers = [
        Subagent(name="zoe", description="last", tools=[], max_cost=Decimal(2)),
        Subagent(name="ann", description="first", skills=["x"], read_only=True, max_turns=1),
    ]
    return save_agent(
        agent,
        related={"databases": [database], "subagents": helpers},
        groups=groups,
        approver_groups=groups[:1],
    )


def test_a_round_trip_loses_nothing_and_keeps_each_byte():
    root = rows.superuser()
    agent = full_agent()
    version = agent.versions.get().spec
    text = export_agent(agent, by=root)

    Agent.objects.filter(pk=agent.pk).delete()
    copy, plan = carry_out_import(text, by=root, known_tools=TOOLS)

    assert (copy.pk != agent.pk, plan.is_new, copy.owner) == (True, True, root)
    assert copy.versions.get().spec == version
    assert export_agent(copy, by=root) == text
    again = plan_import(text, by=root, known_tools=TOOLS)
    assert (again.changes_something, again.diff) == (False, [])
    # A change of one line is one line in the file.
    copy.max_turns = 4
    lines = set(export_agent(save_agent(copy), by=root).splitlines()) ^ set(text.splitlines())
    assert lines == {"max_turns: 3", "max_turns: 4"}


def test_an_import_is_one_new_version_with_a_name_to_it():
    root, agent = rows.superuser(), rows.agent("helper", name="Helper")
    text = SMALL + "max_turns: 7\nsubagents:\n  - name: ann\n    description: helps\n"

    planned = plan_import(text, by=root, known_tools=TOOLS)
    assert Agent.objects.get(pk=agent.pk).max_turns == 500  # planned, not done
    assert not AuditEntry.objects.filter(action="agent.changed").exists()
    carry_out_import(text, by=root, known_tools=TOOLS, base=planned.base)

    versions = AgentVersion.objects.filter(agent=agent).order_by("number")
    assert [version.created_by for version in versions] == [None, root]
    assert [line for line in planned.diff if line[:2] in ("+m", "-e")] == [
        "-everyone: true",
        "+max_turns: 7",
    ]
    entry = AuditEntry.objects.get(action="agent.changed")
    assert entry.changes["max_turns"] == [500, 7]
    assert entry.actor == "root"


def test_an_import_of_another_file_than_shown_is_refused():
    root, agent = rows.superuser(), rows.agent("helper", name="Helper")
    planned = plan_import(SMALL, by=root, known_tools=TOOLS)
    agent.max_turns = 3
    save_agent(agent)

    with pytest.raises(Conflict):
        carry_out_import(SMALL, by=root, known_tools=TOOLS, base=planned.base)
    assert Agent.objects.get(pk=agent.pk).max_turns == 3


def test_names_in_camel_case_and_of_other_harnesses_are_taken():
    root = rows.superuser()
    text = (
        SMALL + "systemPrompt: Be kind.\nmaxTurns: 5\nmodel: {provider: scripted, model: demo}\n"
        "customAgents:\n  ann:\n    description: helps\n    tools: [ls]\n    maxTurns: 9\n"
        "    systemPromptAddition: Look.\n"
    )

    agent, _ = carry_out_import(text, by=root, known_tools=TOOLS)

    assert (agent.system_prompt, agent.max_turns) == ("Be kind.", 5)
    assert (agent.provider, agent.model) == ("scripted", "demo")
    ann = agent.subagents.get()
    assert (ann.name, ann.max_turns, ann.tools) == ("ann", 9, ["ls"])
    assert ann.system_prompt == "Be kind.\n\nLook."


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ("sistem_prompt: x", 3, ["sistem_prompt", "did you mean system_prompt"]),
        ("maxTurns: 0", 3, ["maxTurns", "greater than or equal to 1", "it is 0"]),
        ("max_turns: '5'", 3, ["max_turns", "integer"]),
        ("max_turns: 5\nmaxTurns: 6", 4, ["maxTurns", "no such field"]),
        ("tools:\n  - ls\n  - exceute", 5, ["tools.1", "did you mean execute", "write_todos"]),
        ("interruptOn:\n  exceute: true", 4, ["interruptOn.exceute", "no tool"]),
        ("interrupt_on:\n  execute:\n    expiry: 0", 5, ["expiry"]),
        ("approval_rules:\n  - tool: ls\n    action: maybe", 5, ["'allow', 'ask' or 'deny'"]),
        ("approval_rules:\n  - tool: lss\n    action: ask", 4, ["did you mean ls"]),
        (
            "approval_rules:\n  - tool: execute\n    when:\n      command: '('\n    action: ask",
            6,
            ["approval_rules.0.when.command"],
        ),
        ("network: some", 3, ["'none', 'allowlist' or 'full'"]),
        ("allowed_hosts: ['http://x/']", 3, ["allowed_hosts"]),
        ("toolbox: nowhere", 3, ["no toolbox of this host"]),
        ("provider: openay", 3, ["no provider"]),
        ("databases: [shop]", 3, ["databases.0", "there is no 'shop'"]),
        ("groups:\n- x", 4, ["groups.0", "there is no 'x'"]),
        ("guardrails: [none-such]", 3, ["guardrails"]),
        ("output_schema:\n  type: nothing", 3, ["output_schema"]),
        ("system_prompt: 'of {{user.nmae}}'", 3, ["system_prompt", "user.nmae"]),
        ("max_cost: -1", 3, ["max_cost"]),
        ("max_seconds: 9999999999", 3, ["max_seconds"]),
        ("subagents:\n  - name: ann\n    description: x\n    tool: [ls]", 6, ["tools"]),
        (
            "subagents:\n  - name: ann\n    description: x\n    systemPrompt: '{{user.nmae}}'",
            6,
            ["subagents.0.systemPrompt", "user.nmae"],
        ),
        ("customAgents:\n  ann: {description: x, maxTurns: no}", 4, ["customAgents.ann.maxTurns"]),
        (
            "profile: sandbox_only\ntools: [execute_in_sandbox, read_file]",
            4,
            ["tools.1", "read_file is not in the profile sandbox_only"],
        ),
        (
            "profile: sandbox_only\nsubagents:\n  - name: ann\n    description: x\n"
            "    tools:\n      - execute",
            8,
            ["subagents.0.tools.0", "execute is not in the profile"],
        ),
        ("subagents: [{name: Ann!, description: x}]", 3, ["subagents.0.name", "pattern"]),
    ],
)
def test_errors_have_their_line_and_name_allowed_values(more: str, line: int, said: list[str]):
    with pytest.raises(InvalidAgentFile) as error:
        plan_import(SMALL + more, by=rows.superuser(), known_tools=TOOLS)

    problem = error.value.problems[0]
    assert problem.line == line, problem
    assert [word for word in said if word not in str(problem)] == [], problem


def test_all_problems_are_reported_together_in_order():
    with pytest.raises(InvalidAgentFile) as error:
        plan_import("x: 1\nname: a\nmax_turns: 0", by=rows.superuser(), known_tools=TOOLS)

    assert [problem.line for problem in error.value.problems] == [1, 1, 3]


def test_unknown_names_that_an_agent_already_has_stay():
    root, agent = rows.superuser(), rows.agent("helper", name="Helper", tools=["my_own"])

    text = export_agent(agent, by=root)

    assert not plan_import(text, by=root, known_tools=TOOLS).changes_something
    with pytest.raises(InvalidAgentFile):
        plan_import(text.replace("my_own", "your_own"), by=root, known_tools=TOOLS)


def add_and_change(*more: str) -> Any:
    return rows.staff("ed", "add_agent", "change_agent", "share_agent", *more)


@pytest.mark.parametrize(
    ("more", "permission"),
    [
        ("sandbox: false", "configure_sandbox"),
        ("network: full", "configure_sandbox"),
        ("allowed_hosts: [example.org]", "configure_sandbox"),
        ("command_timeout: 5", "configure_sandbox"),
        ("interrupt_on: {execute: false}", "configure_approval"),
        ("approval_rules: [{tool: ls, action: allow}]", "configure_approval"),
        ("self_approval: false", "configure_approval"),
        ("approver_groups: [team]", "configure_approval"),
        ("databases: [shop]", "configure_database"),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_guarded_fields_need_their_own_permission(more: str, permission: str, exists: bool):
    Group.objects.create(name="team")
    shop()
    if exists:
        rows.agent("helper", name="Helper")
    ed = add_and_change()

    with pytest.raises(NotAllowed, match=permission):
        carry_out_import(SMALL + more, by=ed, known_tools=TOOLS)
    carry_out_import(SMALL + more, by=_given(ed, permission), known_tools=TOOLS)


@pytest.mark.parametrize("more", ["everyone: true", "groups: [team]"])
def test_letting_others_use_an_agent_needs_a_permission(more: str) -> None:
    Group.objects.create(name="team")
    ed = rows.staff("ed", "add_agent", "change_agent")
    with pytest.raises(NotAllowed, match="share_agent"):
        carry_out_import(SMALL + more, by=ed, known_tools=TOOLS)
    carry_out_import(SMALL, by=ed, known_tools=TOOLS)
    with pytest.raises(NotAllowed, match="share_agent"):
        carry_out_import(SMALL + more, by=ed, known_tools=TOOLS)
    carry_out_import(SMALL + more, by=_given(ed, "share_agent"), known_tools=TOOLS)
    # To stop sharing is a change of sharing, too.
    with pytest.raises(NotAllowed, match="share_agent"):
        carry_out_import(SMALL, by=rows.staff("bo", "change_agent"), known_tools=TOOLS)


def test_omitted_guarded_fields_need_permission_too():
    """A missing field means its default: this would remove the sandbox's rules."""
    rows.agent("helper", name="Helper", interrupt_on={"execute": True}, network="full")

    with pytest.raises(NotAllowed, match=r"interrupt_on needs .*configure_approval"):
        carry_out_import(SMALL, by=add_and_change(), known_tools=TOOLS)


def test_guarded_fields_that_stay_need_nothing():
    agent = rows.agent("helper", name="Helper", network="full")
    text = export_agent(agent, by=rows.superuser())

    carry_out_import(text + "max_turns: 4\n", by=add_and_change(), known_tools=TOOLS)

    assert Agent.objects.get(pk=agent.pk).max_turns == 4


def test_an_owner_changes_the_own_agent_without_a_permission() -> None:
    ada = rows.user("ada")
    agent = rows.agent("helper", name="Helper", owner=ada, everyone=False, network="full")
    text = export_agent(agent, by=ada)

    changed, plan = carry_out_import(text + "max_turns: 4\n", by=ada, known_tools=TOOLS)

    assert (plan.is_new, changed.pk, changed.version) == (False, agent.pk, 2)
    assert changed.versions.get(number=2).created_by == ada
    stored = Agent.objects.get(pk=agent.pk)
    assert (stored.max_turns, stored.network, stored.owner) == (4, "full", ada)
    assert AuditEntry.objects.filter(action="agent.changed", actor="ada").count() == 1
    with pytest.raises(NotAllowed, match="add_agent"):
        carry_out_import("name: New\nslug: new\n", by=ada, known_tools=TOOLS)


@pytest.mark.parametrize(
    ("more", "permission"),
    [
        ("network: full", "configure_sandbox"),
        ("interrupt_on: {execute: false}", "configure_approval"),
        ("everyone: true", "share_agent"),
        ("databases: [shop]", "configure_database"),
    ],
)
def test_an_owner_needs_the_permissions_of_guarded_fields(more: str, permission: str) -> None:
    shop()
    ada = rows.user("ada")
    rows.agent("helper", name="Helper", owner=ada, everyone=False)
    with pytest.raises(NotAllowed, match=permission):
        carry_out_import(SMALL + more, by=ada, known_tools=TOOLS)
    carry_out_import(SMALL + more, by=_given(ada, permission), known_tools=TOOLS)


@pytest.mark.parametrize("with_group", [False, True])
def test_an_owner_cannot_let_a_shared_agent_act_in_more_services(with_group: bool) -> None:
    ada = rows.user("ada")
    agent = rows.agent("helper", name="Helper", owner=ada, everyone=not with_group)
    if with_group:
        agent.groups.add(Group.objects.create(name="team"))
    text = export_agent(agent, by=ada)
    carry_out_import(text + "system_prompt: Help.\n", by=ada, known_tools=TOOLS)
    text = export_agent(Agent.objects.get(pk=agent.pk), by=ada) + "integrations: [slack]\n"
    with pytest.raises(NotAllowed, match=r"agents\.share_agent"):
        carry_out_import(text, by=ada, known_tools=TOOLS)
    carry_out_import(text, by=_given(ada, "share_agent"), known_tools=TOOLS)


def test_an_owner_turns_an_agent_off_and_not_on_again() -> None:
    ada = rows.user("ada")
    rows.agent("helper", name="Helper", owner=ada, everyone=False)
    carry_out_import(SMALL + "is_active: false\n", by=ada, known_tools=TOOLS)
    carry_out_import(SMALL + "is_active: false\ndescription: x\n", by=ada, known_tools=TOOLS)
    with pytest.raises(NotAllowed, match=r"agents\.change_agent"):
        carry_out_import(SMALL, by=ada, known_tools=TOOLS)
    carry_out_import(SMALL, by=_given(ada, "change_agent"), known_tools=TOOLS)


def test_an_import_that_is_for_one_agent_refuses_the_file_of_another() -> None:
    root = rows.superuser()
    agent = rows.agent("other")
    for change in (plan_import, carry_out_import):
        with pytest.raises(InvalidAgentFile, match=r"line 2: slug: .*'other'"):
            change(SMALL, by=root, known_tools=TOOLS, of=agent)
    assert not Agent.objects.filter(slug="helper").exists()


def test_import_and_export_need_permissions():
    agent = rows.agent("helper", name="Helper", system_prompt="secret plan")
    ada = rows.user("ada")
    with pytest.raises(NotAllowed):
        export_agent(agent, by=ada)
    with pytest.raises(NotAllowed):
        plan_import(SMALL, by=ada, known_tools=TOOLS)
    with pytest.raises(NotAllowed, match="change_agent"):  # and not the current value
        plan_import(SMALL, by=rows.staff("adder", "add_agent"), known_tools=TOOLS)
    changer = rows.staff("changer", "change_agent")
    with pytest.raises(NotAllowed, match="add_agent"):
        plan_import("name: N\nslug: n\n", by=changer, known_tools=TOOLS)
    assert "secret plan" in export_agent(agent, by=changer)


def _given(user: Any, permission: str) -> Any:
    user.user_permissions.add(*rows.staff(f"with-{permission}", permission).user_permissions.all())
    return type(user).objects.get(pk=user.pk)


@pytest.mark.parametrize("slug", sorted(RESERVED_SLUGS))
def test_reserved_slugs_need_more_than_the_permission_to_add_agents(slug: str) -> None:
    text = f"name: Helper\nslug: {slug}\neveryone: true\n"
    with pytest.raises(NotAllowed, match="slug"):
        carry_out_import(text, by=rows.staff("ada", "add_agent"), known_tools=TOOLS)
    assert not Agent.objects.filter(slug=slug).exists()
    operator = rows.staff("bob", "add_agent", "change_agent", "share_agent")
    assert carry_out_import(text, by=operator, known_tools=TOOLS)[0].slug == slug


def test_the_reserved_slugs_are_those_of_vels_own_agents() -> None:
    assert {BUILDER_SLUG, DEMO_SLUG} == RESERVED_SLUGS


@pytest.mark.parametrize("owns_one", [False, True])
def test_existing_slugs_are_hidden_from_people_who_may_not_define_agents(owns_one: bool) -> None:
    rows.agent("hidden")
    ada = rows.user()
    if owns_one:
        rows.agent("mine", owner=ada)
    told = set()
    for slug in ("hidden", "free"):
        with pytest.raises(NotAllowed) as refused:
            plan_import(f"name: A\nslug: {slug}\n", by=ada, known_tools=TOOLS)
        told.add(refused.value.message)
    assert len(told) == 1

"""Whom an agent can delegate to, and what a subagent runs under.

A subagent is never more than its parent, but for tools that the team itself gives it by name: it
has the parent's approvals, network and memory, and what features relate to the parent.
"""

from __future__ import annotations

from collections.abc import Collection

from agents.spec import ALL_TOOLS, AgentSpec, SubagentSpec

GENERAL = "general"
ALIASES = {"default": GENERAL, "general-purpose": GENERAL}
"""Other names of the general subagent. They are accepted and not advertised."""

EXPLORE_PROMPT = """\
You look around in files and code and report what you find. You change nothing: your files are \
read-only, for commands too. Say where each finding is, by path and line."""

PLAN_PROMPT = """\
You read what there is and write a plan: the steps in their order, each with the files it touches \
and how to check that it is done. You change nothing and run nothing."""

GENERAL_TYPE = SubagentSpec(
    name=GENERAL,
    description="Works on a task of several steps with your own tools.",
    max_turns=50,
)
EXPLORE_TYPE = SubagentSpec(
    name="explore",
    description="Looks around in files and code and reports; changes nothing.",
    system_prompt=EXPLORE_PROMPT,
    tools=("read_file", "ls", "glob", "grep", "execute"),
    read_only=True,
    max_turns=30,
)
PLAN_TYPE = SubagentSpec(
    name="plan",
    description="Reads and writes a plan with steps; changes nothing.",
    system_prompt=PLAN_PROMPT,
    tools=("read_file", "ls", "glob", "grep", "write_todos"),
    read_only=True,
    max_turns=20,
)
_BUILT_IN = (GENERAL_TYPE, EXPLORE_TYPE, PLAN_TYPE)
BUILT_IN_NAMES = frozenset(item.name for item in _BUILT_IN)
RESERVED_NAMES = BUILT_IN_NAMES | frozenset(ALIASES)
"""Only `general` may be defined anew by a team: then that one takes its place."""


def subagents_of(spec: AgentSpec) -> dict[str, SubagentSpec]:
    """Whom this agent can delegate to, by name: the general one first, then its own."""
    if spec.subagent_depth == 0:
        return {}
    found = {GENERAL: GENERAL_TYPE} if spec.general_subagent else {}
    if spec.profile == "full":
        found |= {item.name: item for item in (EXPLORE_TYPE, PLAN_TYPE)}
    return found | {item.name: item for item in spec.subagents}


def find_subagent(spec: AgentSpec, name: str) -> SubagentSpec | None:
    """The subagent of this name or alias; None if the agent has none such."""
    return subagents_of(spec).get(ALIASES.get(name, name))


def child_spec(
    parent: AgentSpec, subagent: SubagentSpec, *, left: Collection[str] | None = None
) -> AgentSpec:
    """What a run of `subagent` runs under.

    `left` are the tools that the parent's active skills leave; None: they narrow nothing.
    """
    built_in = subagent in _BUILT_IN
    tools = parent.tools if subagent.tools is None else subagent.tools
    has_all = parent.tools is None or ALL_TOOLS in parent.tools
    if built_in and subagent.tools is not None and parent.tools is not None and not has_all:
        tools = tuple(tool for tool in subagent.tools if tool in parent.tools)
    depth = max(0, parent.subagent_depth - 1)
    if parent.profile == "sandbox_only":
        # It has write_todos and execute_in_sandbox, whatever its type, and nothing else.
        tools, depth = parent.tools if built_in else tools, 0
    if left is not None and tools is not None and ALL_TOOLS not in tools:
        tools = tuple(tool for tool in tools if tool in left)
    elif left is not None:
        tools = tuple(sorted(left))
    read_only = parent.read_only or subagent.read_only
    return parent.model_copy(
        update={
            "name": subagent.name,
            "subagent": subagent.name,
            "system_prompt": subagent.system_prompt or parent.system_prompt,
            "provider": subagent.provider or parent.provider,
            "model": subagent.model or parent.model,
            "tools": tools,
            "subagent_depth": depth,
            "background_subagents": parent.background_subagents and depth > 0,
            "read_only": read_only,
            "output_schema": "",
            "max_turns": subagent.max_turns,
            "max_tokens": subagent.max_tokens,
            "max_cost": subagent.max_cost,
            "max_seconds": subagent.max_seconds or parent.max_seconds,
        }
    )

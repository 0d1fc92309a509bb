"""The subagents of an agent, and the specifications of their runs.

A subagent has only the rights of its parent, and tools that its definition names. It has the
parent's approvals, network and memory, and the parent's rows of features.
"""

from __future__ import annotations

from collections.abc import Collection

from agents.features.subagents.options import DefinedSubagents, SubagentOptions
from agents.spec import ALL_TOOLS, AgentSpec, SubagentSpec

GENERAL = "general"
ALIASES = {"default": GENERAL, "general-purpose": GENERAL}
"""Other names of the general subagent. They are accepted, but not advertised."""

EXPLORE_PROMPT = """\
You look around in files and code and report what you find. You change nothing: your files are \
read-only, for commands too. Say where each finding is, by path and line."""

PLAN_PROMPT = """\
You read the files and write a plan: the steps in their order, each with the files it touches \
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
BUILT_IN = (GENERAL_TYPE, EXPLORE_TYPE, PLAN_TYPE)


def subagents_of(spec: AgentSpec) -> dict[str, SubagentSpec]:
    """Return the subagents by name: the built-in ones, then the agent's own.

    The general subagent is an option; the others that are built in need the full profile. A
    subagent of the agent replaces a built-in one with its name. Without a depth of delegation there
    are none.
    """
    options = spec.option(SubagentOptions)
    if options.subagent_depth == 0:
        return {}
    found = {GENERAL: GENERAL_TYPE} if options.general_subagent else {}
    if spec.profile == "full":
        found |= {item.name: item for item in (EXPLORE_TYPE, PLAN_TYPE)}
    return found | {item.name: item for item in spec.option(DefinedSubagents).subagents}


def find_subagent(spec: AgentSpec, name: str) -> SubagentSpec | None:
    """Return the subagent with this name or alias. None if the agent has none."""
    return subagents_of(spec).get(ALIASES.get(name, name))


def child_spec(
    parent: AgentSpec, subagent: SubagentSpec, *, left: Collection[str] | None = None
) -> AgentSpec:
    """Return the specification for a run of `subagent`.

    `left` are the tools that the parent's active skills allow; None means no restriction.
    """
    built_in = subagent in BUILT_IN
    tools = parent.tools if subagent.tools is None else subagent.tools
    has_all = parent.tools is None or ALL_TOOLS in parent.tools
    if built_in and subagent.tools is not None and parent.tools is not None and not has_all:
        tools = tuple(tool for tool in subagent.tools if tool in parent.tools)
    options = parent.option(SubagentOptions)
    depth = max(0, options.subagent_depth - 1)
    if parent.profile == "sandbox_only":
        # It has write_todos and execute_in_sandbox only, for any type.
        tools, depth = parent.tools if built_in else tools, 0
    if left is not None and tools is not None and ALL_TOOLS not in tools:
        tools = tuple(tool for tool in tools if tool in left)
    elif left is not None:
        tools = tuple(sorted(left))
    read_only = parent.read_only or subagent.read_only
    limits = [name for name in ("max_tokens", "max_cost") if getattr(subagent, name) is not None]
    # Its limits can be stricter than those of the parent.
    needs = parent.needs | ({"budgets": limits[-1]} if limits else {})
    return parent.model_copy(
        update={
            "name": subagent.name,
            "subagent": subagent.name,
            "system_prompt": subagent.system_prompt or parent.system_prompt,
            "provider": subagent.provider or parent.provider,
            "model": subagent.model or parent.model,
            "tools": tools,
            "subagent_depth": depth,
            "background_subagents": options.background_subagents and depth > 0,
            "read_only": read_only,
            "needs": needs,
            "output_schema": "",
            "max_turns": subagent.max_turns,
            "max_tokens": subagent.max_tokens,
            "max_cost": subagent.max_cost,
            "max_seconds": subagent.max_seconds or parent.max_seconds,
        }
    )

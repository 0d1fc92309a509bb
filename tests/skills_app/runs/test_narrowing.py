"""An active skill can only narrow the permissions of an agent, whatever its content."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.calls.admission import judge_call
from agents.engine.session import Session
from agents.features.approvals.gate import ApprovalsGate
from agents.middleware.registry import known_tool_names, toolset_for
from agents.middleware.run_parts import RunParts
from agents.spec import AgentSpec
from skills_app.library.allowed_tools import NEVER_REMOVED
from skills_app.library.package import Head
from skills_app.library.pinned import PinnedSkill
from skills_app.runs.session import RunSkills

ORDER = {"deny": 0, "ask": 1, "allow": 2}
TOOLS = sorted(known_tool_names())
NAMES = st.sampled_from(
    [*TOOLS, "*", "Bash(rm:*)", "Read", "Write", "Edit", "WebFetch", "Task", "", "mcp__x__y", "ALL"]
)
RULES = st.fixed_dictionaries(
    {
        "tool": st.sampled_from([*TOOLS, "*", "write_*", "*_skill"]),
        "action": st.sampled_from(["allow", "ask", "deny"]),
    }
)
SKILLS = st.lists(st.none() | st.lists(NAMES, max_size=4).map(tuple), max_size=3)
PATHS = st.sampled_from(["/a.txt", "/memory/knowledge/a.md"])


def session_with(spec: AgentSpec, allowed: list[tuple[str, ...] | None]) -> Session:
    active = {
        f"s{number}": PinnedSkill(
            number, "", "built-in", Head(f"s{number}", "x", allowed_tools=names)
        )
        for number, names in enumerate(allowed)
    }
    toolset = toolset_for(spec)
    session = SimpleNamespace(
        spec=spec,
        toolset=toolset,
        parts=RunParts([RunSkills(None, {}, active)]),
        known_tools=lambda: known_tool_names() | toolset.tools.keys(),
    )
    session.gate = ApprovalsGate(cast(Session, session))
    return cast(Session, session)


@pytest.mark.slow
@given(
    rules=st.lists(RULES, max_size=4),
    asks=st.lists(st.sampled_from(TOOLS), max_size=3),
    own=st.none() | st.lists(st.sampled_from(TOOLS), max_size=6),
    allowed=SKILLS,
    path=PATHS,
)
def test_no_call_may_run_that_could_not_without_skills(
    rules: list[dict[str, str]],
    asks: list[str],
    own: list[str] | None,
    allowed: list[tuple[str, ...] | None],
    path: str,
) -> None:
    spec = AgentSpec(
        name="",
        slug="",
        provider="",
        model="",
        approval_rules=rules,  # type: ignore[arg-type]
        interrupt_on=dict.fromkeys(asks, True),
        tools=tuple(own) if own is not None else None,
    )
    with_skills, without = session_with(spec, allowed), session_with(spec, [])
    assert with_skills.toolset.tools == without.toolset.tools
    for tool in without.toolset.tools.values():
        asked = _input(path)
        raw = {"path": path, "content": "x", "command": "x", "name": "x"}
        free = judge_call(without, tool, asked, raw)
        bound = judge_call(with_skills, tool, asked, raw)
        assert ORDER[bound.action] <= ORDER[free.action]
        if bound.action != "deny":
            assert bound == free  # the same request to the same people
        if tool.name in NEVER_REMOVED:
            assert bound == free  # an agent can always deactivate a skill


def _input(path: str) -> Any:
    """Return an input with the fields that any `Tool.proposes` reads."""
    return SimpleNamespace(
        path=path,
        content="x",
        old_text="x",
        new_text="y",
        replace_all=False,
        reason="",
        operation="write",
    )

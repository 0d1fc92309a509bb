"""The meaning of other products' tool names in Vel."""

from __future__ import annotations

import pytest

from agents.middleware.registry import known_tool_names
from skills_app.library.allowed_tools import _OTHER_NAMES, NEVER_REMOVED, narrows_to, tools_named

KNOWN = known_tool_names()


def test_the_table_contains_only_tools_of_vel() -> None:
    for name, tools in _OTHER_NAMES.items():
        assert name == name.lower()
        assert tools <= KNOWN | {
            "parallel_tasks", "spawn_subagent", "spawn_parallel", "wait_subagent",
            "cancel_subagent", "task",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "tools", "unknown"),
    [
        (("Read", "Bash(git add:*)"), {"read_file", "execute", "execute_python"}, []),
        (("Grep", "AskUserQuestion", "mcp__x__y"), {"grep"}, ["AskUserQuestion", "mcp__x__y"]),
        (("List", "view"), {"ls", "read_file"}, []),
        (("TaskCreate", "TaskList", "TodoWrite"), set(), []),
        (("write_file",), {"write_file"}, []),
        (("*",), KNOWN, []),
    ],
)
def test_names(names: tuple[str, ...], tools: set[str], unknown: list[str]) -> None:
    found, not_known = tools_named(names, KNOWN)
    assert found - {"execute_in_sandbox"} == tools - {"execute_in_sandbox"}
    assert not_known == unknown


def test_allowed_tools_narrow_to_the_named_tools() -> None:
    assert narrows_to(None, KNOWN) is None
    assert narrows_to(("WebFetch", "WebSearch"), KNOWN) is None
    assert narrows_to((), KNOWN) == NEVER_REMOVED
    assert narrows_to(("TodoWrite",), KNOWN) == NEVER_REMOVED

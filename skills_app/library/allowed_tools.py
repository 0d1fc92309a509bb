"""Map the `allowed-tools` of a skill to Vel's tools.

Skills use the tool names of the product that they were written for. While a skill is active, its
agent has only the allowed tools. This helps the agent to keep to its task. It is not a security
boundary, because the agent may deactivate the skill.
"""

from __future__ import annotations

from collections.abc import Iterable

_RUN = frozenset({"execute", "execute_python", "execute_in_sandbox"})
_DELEGATE = frozenset(
    {
        "task",
        "parallel_tasks",
        "spawn_subagent",
        "spawn_parallel",
        "wait_subagent",
        "cancel_subagent",
    }
)
_IN_SANDBOX = frozenset({"execute_in_sandbox"})
_ALWAYS: frozenset[str] = frozenset()

_READ = frozenset({"read_file"}) | _IN_SANDBOX
_WRITE = frozenset({"write_file"}) | _IN_SANDBOX
_EDIT = frozenset({"edit_file"}) | _IN_SANDBOX
_GLOB = frozenset({"glob"}) | _IN_SANDBOX
_GREP = frozenset({"grep"}) | _IN_SANDBOX
_LS = frozenset({"ls"}) | _IN_SANDBOX

_OTHER_NAMES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("read", "view", "view_file", "notebookread", "read_many_files"), _READ),
    **dict.fromkeys(("write", "create_file", "write_to_file", "save_file"), _WRITE),
    **dict.fromkeys(("edit", "multiedit", "notebookedit", "replace", "replace_in_file"), _EDIT),
    **dict.fromkeys(("str_replace", "apply_patch", "replace_string_in_file"), _EDIT),
    **dict.fromkeys(("str_replace_editor", "str_replace_based_edit_tool"), _READ | _WRITE | _EDIT),
    **dict.fromkeys(("glob", "file_search", "find_files"), _GLOB),
    **dict.fromkeys(("grep", "grep_search", "search_files", "search_file_content"), _GREP),
    **dict.fromkeys(("ls", "list", "list_dir", "list_directory", "list_files"), _LS),
    **dict.fromkeys(("bash", "shell", "terminal", "python", "code_execution", "powershell"), _RUN),
    **dict.fromkeys(("bashoutput", "killshell", "killbash", "run_command"), _RUN),
    **dict.fromkeys(("run_in_terminal", "run_terminal_cmd", "run_shell_command"), _RUN),
    "execute_command": _RUN,
    **dict.fromkeys(("task", "agent", "taskoutput", "sendmessage"), _DELEGATE),
    **dict.fromkeys(("todowrite", "todoread", "skill"), _ALWAYS),
    **dict.fromkeys(("taskcreate", "taskupdate", "tasklist", "taskget"), _ALWAYS),
}
"""The tools of Vel for each tool name of other products (lower case).

A name with no tools stands for a tool that is never removed.
"""

NEVER_REMOVED = frozenset(
    {"write_todos", "read_todos", "list_skills", "load_skill", "deactivate_skill"}
)


def tools_named(names: Iterable[str], known: Iterable[str]) -> tuple[frozenset[str], list[str]]:
    """Return (the tools of Vel that `names` allow, the unknown names).

    `known` are Vel's own tool names. Text in parentheses is ignored: `Bash(git:*)` counts as
    `Bash`.
    """
    known = frozenset(known)
    tools: set[str] = set()
    unknown: list[str] = []
    for name in names:
        plain = name.partition("(")[0].strip()
        if plain == "*":
            tools |= known
        elif plain in known:
            tools.add(plain)
        elif plain.lower() in _OTHER_NAMES:
            tools |= _OTHER_NAMES[plain.lower()]
        else:
            unknown.append(name)
    return frozenset(tools), unknown


def narrows_to(names: tuple[str, ...] | None, known: Iterable[str]) -> frozenset[str] | None:
    """Return the tools that a skill with the `allowed-tools` `names` allows; None if it allows all.

    If all names are unknown, the skill is for another product and allows all tools.
    """
    if names is None:
        return None
    tools, unknown = tools_named(names, known)
    if names and len(unknown) == len(names):
        return None
    return tools | NEVER_REMOVED

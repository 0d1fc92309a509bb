"""Vel for Python programs: `from vel import create_deep_agent` (docs/python.md).

A name is loaded when it is first used, so that a program loads only what it needs.
"""

from importlib import import_module
from typing import Any

_HARNESS = "agents.harness."
_CUSTOM = "agents.custom."
_NAMES = {
    "create_deep_agent": _HARNESS + "deep_agent",
    "DeepAgent": _HARNESS + "deep_agent",
    "DeepAgentConfig": _HARNESS + "config",
    "SubagentConfig": _HARNESS + "config",
    "StreamMode": _HARNESS + "stream",
    "StreamEvent": _HARNESS + "stream",
    "AgentFile": _HARNESS + "agent_file",
    "AgentError": _HARNESS + "errors",
    "SetupError": _HARNESS + "errors",
    "RunFailed": _HARNESS + "errors",
    "RunCancelled": _HARNESS + "errors",
    "RunInterrupted": _HARNESS + "errors",
    "PlanningMiddleware": _HARNESS + "planning",
    "TodoList": _HARNESS + "planning",
    "TodoItem": _HARNESS + "planning",
    "FilesystemMiddleware": _HARNESS + "filesystem",
    "SkillsMiddleware": "skills_app.component",
    "SkillInjectionMode": "skills_app.component",
    "SubagentMiddleware": _HARNESS + "subagents",
    "SubagentsMiddleware": _HARNESS + "subagents",
    "HumanInTheLoopMiddleware": _HARNESS + "human",
    "DatabaseBackend": _HARNESS + "databases",
    "QueryResult": _HARNESS + "databases",
    "create_sandbox": _HARNESS + "sandboxes",
    "BubblewrapSandbox": _HARNESS + "sandboxes",
    "SeatbeltSandbox": _HARNESS + "sandboxes",
    "BaseSandbox": "sandbox.base",
    "ExecutionResult": "sandbox.result",
    "SandboxNotAvailableError": "sandbox.errors",
    "SandboxFilesystemBackend": "sandbox.backends.sandboxed",
    "StateFilesystemBackend": "sandbox.backends.state",
    "CompositeBackend": "sandbox.backends.composite",
    "Skill": "skills_app.library.skill",
    "SkillRegistry": "skills_app.registry",
    "SkillsRegistry": "skills_app.registry",
    "load_skill": "skills_app.library.skill",
    "load_skills_from_directory": "skills_app.registry",
    "VelHarness": _HARNESS + "vel_harness",
    "HarnessConfig": _HARNESS + "vel_harness",
    "create_harness": _HARNESS + "vel_harness",
    "create_coding_harness": _HARNESS + "vel_harness",
    "create_research_harness": _HARNESS + "vel_harness",
    "AgentConfig": _HARNESS + "agent_registry",
    "AgentRegistry": _HARNESS + "agent_registry",
    "SubagentSpawner": _HARNESS + "spawner",
    "SubagentResult": _HARNESS + "spawner",
    "SubagentStatus": _HARNESS + "spawner",
    "tool": _CUSTOM + "tool_spec",
    "ToolSpec": _CUSTOM + "tool_spec",
    "ToolContext": _CUSTOM + "context",
    "BaseMiddleware": _CUSTOM + "base_middleware",
    "Middleware": _CUSTOM + "base_middleware",
    "ModelAnswer": _CUSTOM + "hooks",
    "ToolAnswer": _CUSTOM + "hooks",
    "EndRun": _CUSTOM + "hooks",
    "scripted_model": _HARNESS + "scripted",
}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if problem := import_module("velproject.own_agents").problem():
        raise ImportError(problem)
    found = getattr(import_module(_NAMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

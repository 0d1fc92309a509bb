"""Public API of Vel for Python programs: `from vel import create_deep_agent`.

docs/guides/python.md explains how to use it. Each name is loaded at its first use, so that a
program loads only what it needs. Type checkers read `__init__.pyi`.
"""

from importlib import import_module
from typing import Any

_SDK = "agents.sdk."
_CUSTOM = "agents.custom."
_NAMES = {
    "create_deep_agent": _SDK + "deep_agent",
    "DeepAgent": _SDK + "deep_agent",
    "DeepAgentConfig": _SDK + "config",
    "SubagentConfig": _SDK + "config",
    "StreamMode": _SDK + "streaming.stream",
    "StreamEvent": _SDK + "streaming.stream",
    "AgentFile": _SDK + "streaming.agent_file",
    "AgentError": _SDK + "errors",
    "SetupError": _SDK + "errors",
    "RunFailed": _SDK + "errors",
    "RunCancelled": _SDK + "errors",
    "RunInterrupted": _SDK + "errors",
    "InvalidRequest": "agents.services.errors",
    "NotAllowed": "agents.services.errors",
    "NotFound": "agents.services.errors",
    "Conflict": "agents.services.errors",
    "NoSpace": "agents.services.errors",
    "ModelConfig": _SDK + "model_config",
    "PlanningMiddleware": _SDK + "components.planning",
    "TodoList": _SDK + "components.planning",
    "TodoItem": _SDK + "components.planning",
    "FilesystemMiddleware": _SDK + "components.filesystem",
    "SkillsMiddleware": "skills_app.component",
    "SkillInjectionMode": "skills_app.component",
    "SubagentMiddleware": _SDK + "components.subagents",
    "SubagentsMiddleware": _SDK + "components.subagents",
    "HumanInTheLoopMiddleware": _SDK + "components.human",
    "SandboxMiddleware": _SDK + "components.execution",
    "DatabaseMiddleware": _SDK + "components.databases",
    "ContextManagementMiddleware": _SDK + "components.model_calls",
    "CachingMiddleware": _SDK + "components.model_calls",
    "RetryMiddleware": _SDK + "components.model_calls",
    "MemoryMiddleware": "memory.component",
    "DatabaseBackend": _SDK + "components.databases",
    "QueryResult": _SDK + "components.databases",
    "create_database_tools": _SDK + "components.databases",
    "create_sandbox": _SDK + "components.sandboxes",
    "BubblewrapSandbox": _SDK + "components.sandboxes",
    "SeatbeltSandbox": _SDK + "components.sandboxes",
    "BaseSandbox": "sandbox.base",
    "ExecutionResult": "sandbox.result",
    "SandboxNotAvailableError": "sandbox.errors",
    "SandboxSetupError": "sandbox.errors",
    "SandboxFilesystemBackend": "sandbox.backends.sandboxed",
    "FilesystemBackend": "sandbox.backends.protocol",
    "create_execution_tools": _SDK + "components.execution",
    "StateFilesystemBackend": "sandbox.backends.state",
    "FileData": "sandbox.backends.state",
    "CompositeBackend": "sandbox.backends.composite",
    "Skill": "skills_app.library.skill",
    "SkillRegistry": "skills_app.registry",
    "SkillsRegistry": "skills_app.registry",
    "InvalidSkill": "skills_app.library.problems",
    "parse_skill_file": "skills_app.library.skill",
    "load_skill": "skills_app.library.skill",
    "load_skills_from_directory": "skills_app.registry",
    "VelHarness": _SDK + "vel_harness",
    "HarnessConfig": _SDK + "vel_harness",
    "create_harness": _SDK + "vel_harness",
    "create_coding_harness": _SDK + "vel_harness",
    "create_research_harness": _SDK + "vel_harness",
    "AgentConfig": _SDK + "agent_registry",
    "AgentRegistry": _SDK + "agent_registry",
    "DEFAULT_AGENTS": _SDK + "agent_registry",
    "SubagentSpawner": _SDK + "components.spawner",
    "SubagentResult": _SDK + "components.spawner",
    "SubagentStatus": _SDK + "components.spawner",
    "tool": _CUSTOM + "tool_spec",
    "ToolSpec": _CUSTOM + "tool_spec",
    "ToolContext": _CUSTOM + "signature",
    "BaseMiddleware": _CUSTOM + "base_middleware",
    "Middleware": _CUSTOM + "base_middleware",
    "ModelAnswer": _CUSTOM + "hooks",
    "ToolAnswer": _CUSTOM + "hooks",
    "EndRun": _CUSTOM + "hooks",
    "scripted_model": _SDK + "components.scripted",
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

"""Check option values without settings or rows, so that a config can make the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from agents.kernel.lazy_modules import lazy_modules
from agents.kernel.options import AgentOptions
from agents.prompt_variables import problem_of
from agents.sdk import arguments
from agents.sdk.errors import SetupError
from agents.spec import OPTIONS, IntegrationOptions, PolicyRule
from sandbox.errors import SandboxSetupError
from sandbox.own_directory.rules import FileRules

with lazy_modules:
    # Import late, because few programs need these modules.
    from agents import conditions
    from sandbox.linux.egress import rules
    from sandbox.toolboxes import toolbox as toolboxes

ARGUMENTS = {
    "provider": "model",
    "thinking": "model",
    "effort": "model",
    "max_output_tokens": "model",
    "builtin_skills": "include_builtin_skills",
    "suggest_skills": "auto_load_skills",
    "sandbox": "sandbox_enabled",
    "network": "sandbox_network",
    "command_timeout": "sandbox_timeout",
    "max_turns": "max_steps",
    "tools": "only_tools",
}
"""The arguments for options of the agent that have another name."""


def check_options(
    kind: type[Any], given: Mapping[str, Any], of_features: Sequence[type[AgentOptions]]
) -> None:
    """Check the argument `options` of the config class `kind`. Raises `SetupError`.

    `of_features` are the options of features that can be checked without Django's apps.
    """
    known = {field.name: field.name for field in fields(kind)} | ARGUMENTS
    for name in given:
        if name in known:
            raise SetupError(f"options: {name}: give the argument {known[name]} instead.")
    parts: list[type[AgentOptions]] = [*OPTIONS, *of_features]
    for part in parts:
        if part is not IntegrationOptions:  # they depend on the installed features
            own = {name: value for name, value in given.items() if name in part.model_fields}
            arguments.check_fields(part, own, "options")
    if hosts := given.get("allowed_hosts"):
        try:
            rules.parse_allowlist(hosts)
        except SandboxSetupError as error:
            raise SetupError(f"options: allowed_hosts: {error}") from None
    for at, rule in enumerate(given.get("approval_rules", ())):
        condition = PolicyRule.model_validate(rule).when
        if wrong := conditions.problem_of(condition):
            raise SetupError(f"options: approval_rules.{at}.when.{wrong[0]}: {wrong[1]}")


def is_agent_option(kind: type[Any], name: str, of_features: Sequence[type[AgentOptions]]) -> bool:
    """Return whether `options` of the config class `kind` accepts the name."""
    known = {field.name for field in fields(kind)} | ARGUMENTS.keys()
    parts: list[type[AgentOptions]] = [*OPTIONS, *of_features]
    return name not in known and any(name in part.model_fields for part in parts)


def check_toolbox(name: str) -> None:
    """Raise `SetupError` if no toolbox can have the name `name`."""
    try:
        toolboxes.check_name(name)
    except toolboxes.ToolboxError as error:
        raise SetupError(f"toolbox: {error}") from None


def check_prompt(name: str, prompt: str) -> None:
    """Raise `SetupError` if `prompt` contains an unknown variable."""
    if problem := problem_of(prompt):
        raise SetupError(f"{name}: {problem}")


def check_file_rules(allow_write: Sequence[str], protect: Sequence[str]) -> None:
    """Raise `SetupError` for a pattern that cannot match a file."""
    given = {"sandbox_allow_write": (allow_write, ()), "sandbox_protect": ((), protect)}
    for name, (allowed, protected) in given.items():
        try:
            FileRules(tuple(allowed), tuple(protected))
        except SandboxSetupError as error:
            raise SetupError(f"{name}: {error}") from None

"""Checks of an agent's definition: its profile must include everything that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from agents.middleware.custom.registered import registered_tools
from agents.middleware.registry import installed_middleware, known_tool_names, toolset_for
from agents.services.errors import InvalidRequest
from agents.spec import ALL_TOOLS, SANDBOX_ONLY, AgentSpec

COMMANDS = "execute_in_sandbox"


def check_profile(spec: AgentSpec) -> None:
    """Raise `InvalidRequest` if the profile ignores an option.

    The message starts with the name of the option.
    """
    for item in installed_middleware():
        if spec.profile not in item.profiles and (option := item.wanted_by(spec)):
            raise refused(
                option,
                f"an agent with the profile {spec.profile} has no tools for it. Leave it out, or "
                "use the profile full.",
            )
    if spec.profile == SANDBOX_ONLY and not spec.sandbox:
        raise refused(
            "sandbox",
            f"the profile {SANDBOX_ONLY} works with commands only, which need the sandbox. Turn "
            "it on, or use the profile full.",
        )
    check_named_tools(spec, _named_tools(spec))
    check_has_commands(spec, "tools", spec.tools)


def check_named_tools(spec: AgentSpec, named: Iterable[tuple[str, str]]) -> None:
    """Raise `InvalidRequest` if the definition names a tool that its profile does not have.

    `named` has pairs of a place in the definition and a tool.
    """
    left_out = known_tool_names() if spec.profile == SANDBOX_ONLY else frozenset({COMMANDS})
    for place, name in named:
        if name in left_out and name not in (offered := _offered(spec)):
            raise refused(
                place,
                f"the tool {name} is not in the profile {spec.profile}. Its tools are "
                f"{', '.join(offered)}.",
            )


def check_has_commands(spec: AgentSpec, place: str, tools: Collection[str] | None) -> None:
    """Raise `InvalidRequest` for a list of tools with which the profile could not work."""
    if (
        spec.profile == SANDBOX_ONLY
        and tools is not None
        and not {COMMANDS, ALL_TOOLS} & set(tools)
    ):
        raise refused(
            place,
            f"{COMMANDS} is missing. An agent with the profile {SANDBOX_ONLY} cannot work without "
            "it: add it, or leave the tools out.",
        )


def refused(place: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{place}: {reason}", code="invalid_agent")


def _offered(spec: AgentSpec) -> list[str]:
    """Return the names of all tools that the agent could have, in their usual order."""
    return [*toolset_for(spec.model_copy(update={"tools": None})).tools, *registered_tools()]


def _named_tools(spec: AgentSpec) -> Iterator[tuple[str, str]]:
    """Yield the tools that the definition requires or asks about: (place, tool).

    Tools that run without a person need not exist, and rules of the profile full can name any.
    """
    yield from ((f"tools.{at}", name) for at, name in enumerate(spec.tools or ()))
    if spec.profile == SANDBOX_ONLY:
        for name, rule in spec.interrupt_on.items():
            if rule is not False:
                yield f"interrupt_on.{name}", name
        for at, policy_rule in enumerate(spec.approval_rules):
            if policy_rule.action != "allow":
                yield f"approval_rules.{at}.tool", policy_rule.tool


DEFINITION_CHECKS = (check_profile,)

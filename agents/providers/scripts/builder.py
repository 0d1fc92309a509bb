"""Building an agent without a language model: the script offers the templates and creates one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agents.kernel.lazy_modules import lazy_modules
from agents.providers.scripts.base import ENDED, Message, ScriptTurn, is_request, text_of

with lazy_modules:
    # YAML takes 15 ms, which the other scripts do not need.
    from agents.agent_templates import catalogue


if TYPE_CHECKING:
    from agents.agent_templates.catalogue import AgentTemplate

SECONDS_A_TURN = 0.3
_LETTERS = "ABCDEFGH"


def script(messages: list[Message]) -> ScriptTurn:
    """Offer the templates; create the chosen agent; report the result."""
    request, played = "", 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            played += 1
        elif is_request(message):
            request = text_of(message)
            break
    chosen = _chosen(request)
    if chosen is None:
        return ScriptTurn(_offer(), delay=SECONDS_A_TURN)
    template, name = chosen
    definition = template.file(name=name, slug=_slug(name) or template.slug)
    match played:
        case 0:
            return ScriptTurn(
                f"{name}, from the template {template.slug}. I check it first.",
                [("check_agent", {"definition": definition})],
                SECONDS_A_TURN,
            )
        case 1:
            if _is_error(messages[-1]):
                return ScriptTurn(f"It cannot be made like this: {_result(messages[-1])}")
            return ScriptTurn(
                "It can be made. You see all of it in the request, and can change it there.",
                [("create_agent", {"definition": definition})],
                SECONDS_A_TURN,
            )
        case 2:
            if _is_error(messages[-1]):
                return ScriptTurn(f"It was not made: {_result(messages[-1])}")
            return ScriptTurn(
                f"✅ {name} is there: choose it on the first page and give it a task."
            )
    return ScriptTurn(ENDED)


def _offer() -> str:
    lines = [
        f"{letter}) {template.name}: {template.description}"
        for letter, template in zip(_LETTERS, _templates(), strict=False)
    ]
    return (
        "I am the offline scripted model: no language model is asked, so I can only offer the "
        "templates.\n\n" + "\n".join(lines) + "\n\nWhat would you prefer? Answer with a letter "
        "and a name, as `B Sales figures`."
    )


def _chosen(request: str) -> tuple[AgentTemplate, str] | None:
    found = re.match(r"\s*([A-Ha-h])(?:[):.]|\b)\s*(.*)", request)
    templates = _templates()
    if not found or _LETTERS.index(found[1].upper()) >= len(templates):
        return None
    template = templates[_LETTERS.index(found[1].upper())]
    return template, " ".join(found[2].split())[:80] or template.name


def _templates() -> list[AgentTemplate]:
    return list(catalogue.agent_templates().values())


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80]


def _is_error(message: Message) -> bool:
    return any(block.get("is_error") for block in message["content"])


def _result(message: Message) -> str:
    return " ".join(
        str(block.get("content", ""))
        for block in message["content"]
        if block["type"] == "tool_result"
    )[:500]

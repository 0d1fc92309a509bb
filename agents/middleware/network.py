"""The network of commands: a sentence for the prompt, lines for the model, events for the run."""

from __future__ import annotations

from dataclasses import asdict, replace

from agents.events.append import EventDraft
from agents.events.catalogue.sandbox import SandboxConnection
from agents.spec import AgentSpec
from sandbox.result import ExecutionResult

_MOST_NAMED = 30
_MOST_LINES = 10
_THROUGH = "through the HTTP proxy that the environment variables name"


def network_sentence(spec: AgentSpec) -> str:
    """Return a sentence about the reachable network, for the prompt."""
    if spec.network == "full":
        return f"Commands reach public internet addresses {_THROUGH}, and nothing else."
    if spec.network == "none" or not spec.allowed_hosts:
        return "There is no network."
    named = ", ".join(spec.allowed_hosts[:_MOST_NAMED])
    more = len(spec.allowed_hosts) - _MOST_NAMED
    also = f" and {more} more" if more > 0 else ""
    return f"Commands reach only these hosts, {_THROUGH}: {named}{also}."


def with_refusals(result: ExecutionResult) -> ExecutionResult:
    """Return the result with a line in its stderr for each refused destination, for the model."""
    refused = [row for row in result.connections if not row.allowed]
    if not refused:
        return result
    lines = [
        f"[network: refused {f'{row.host}:{row.port}' if row.host else 'a request'}: {row.reason}]"
        for row in refused[:_MOST_LINES]
    ]
    if len(refused) > _MOST_LINES:
        lines.append(f"[network: {len(refused) - _MOST_LINES} more destinations were refused]")
    before = (
        result.stderr
        if result.stderr.endswith("\n") or not result.stderr
        else (f"{result.stderr}\n")
    )
    return replace(result, stderr=before + "\n".join(lines) + "\n")


def connection_events(call_id: str, result: ExecutionResult) -> list[EventDraft]:
    """Return one event for each destination of a command; equal connections are counted."""
    return [SandboxConnection(call_id=call_id, **asdict(row)) for row in result.connections]

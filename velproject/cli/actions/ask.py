"""Asking the person at the terminal about one request for approval."""

from __future__ import annotations

import json
import os
import sys
import termios
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from agents.models import ApprovalRequest
from agents.services.approvals import DecisionRequest
from agents.states import Decision
from velproject.cli.terminal import visible

_KEYS = {
    "y": Decision.APPROVE,
    "n": Decision.REJECT,
    "e": Decision.EDIT,
    "r": Decision.RESPOND,
}
_WORDS = {"y": "y(es)", "n": "n(o)", "e": "e(dit)", "r": "r(espond instead)"}


def ask(request: ApprovalRequest, console: Console) -> DecisionRequest | None:
    """Show the whole request and take a decision on just that. None leaves it waiting (Ctrl-D).

    Nothing is approved by an empty line, or by keys that were pressed before it was shown.
    """
    show_request(request, console)
    keys = [key for key, decision in _KEYS.items() if decision in request.allowed_decisions]
    question = f"Run it? [{' / '.join(_WORDS[key] for key in keys)}] "
    _forget_typed_ahead()
    try:
        while True:
            key = _read(question, console).strip().lower()[:1]
            if key in keys:
                answer = _answer(_KEYS[key], request, console)
                if answer is not None:
                    return answer
    except EOFError:
        console.print()
        return None


def show_request(request: ApprovalRequest, console: Console) -> None:
    """The request in full: a part that is not shown is a part that nobody approved."""
    console.print(Text(f"\n{visible(request.tool)} ({request.kind})", style="bold yellow"))
    if request.prompt:
        console.print(Text(visible(request.prompt), style="yellow"))
    console.print(Text(input_as_text(request.input)))


def input_as_text(given: Any) -> str:
    """A tool's input, every line of it, with control characters as code points."""
    if not isinstance(given, dict) or not given:
        return "  " + visible(json.dumps(given, ensure_ascii=False))
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = visible(text)
        if "\n" in shown:
            lines.append(f"  {visible(name)}:")
            lines += [f"  │ {line}" for line in shown.split("\n")]
        else:
            lines.append(f"  {visible(name)}: {shown}")
    return "\n".join(lines)


def _answer(
    decision: Decision, request: ApprovalRequest, console: Console
) -> DecisionRequest | None:
    """The rest of an answer; None goes back to the question."""
    reason = ""
    given = None
    if decision == Decision.REJECT:
        reason = _read("Why not? (told to the agent; may be empty) ", console).strip()
    elif decision == Decision.RESPOND:
        reason = _read("Result to give it instead: ", console)
        if not reason.strip():
            return None
    elif decision == Decision.EDIT:
        given = _edit(request.input, console)
        if given is None:
            return None
        console.print(Text(input_as_text(given)))
        if _read("Run this instead? [y/n] ", console).strip().lower() != "y":
            return None
    return DecisionRequest(decision=decision, digest=request.digest, input=given, reason=reason)


def _edit(given: Any, console: Console) -> dict[str, Any] | None:
    """The input as the person changed it in the editor, or typed it as JSON."""
    text: str | None
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        text = click.edit(json.dumps(given, indent=2, ensure_ascii=True), extension=".json")
    else:
        text = _read("New input as JSON: ", console)
    try:
        changed = json.loads(text or "")
    except ValueError as error:
        console.print(Text(f"Nothing changed: that is not JSON ({error}).", style="red"))
        return None
    if not isinstance(changed, dict):
        console.print(Text("Nothing changed: the input must be a JSON object.", style="red"))
        return None
    return changed


def _read(question: str, console: Console) -> str:
    console.print(Text(question, style="bold"), end="")
    console.file.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _forget_typed_ahead() -> None:
    """Keys pressed while the agent worked were not meant for this question."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

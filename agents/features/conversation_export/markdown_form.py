"""A conversation as Markdown for people, in pieces. Steps are folded and cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from django.contrib.auth.models import User

from agents.features.conversation_export.markdown_text import code, fenced, in_html, inline, quoted
from agents.features.conversation_export.reading import Conversation, Files, RunHead, Turn
from agents.features.conversation_export.shapes import MICRO
from agents.hidden_text import cut_text
from agents.models import ApprovalRequest, Message, Run, RunClock, ToolCall
from agents.states import ApprovalStatus, Decision

INPUT_CHARACTERS = 1_000
OUTPUT_CHARACTERS = 2_000
OUTPUT_LINES = 40
NOTE_CHARACTERS = 1_000
REASON_CHARACTERS = 500
SHOWN_FILES = 200
END = "*End of the conversation.*\n"
"""The last line. A file without it is incomplete."""

_DECIDED = {
    Decision.APPROVE: "Approved by",
    Decision.EDIT: "Approved with changes by",
    Decision.REJECT: "Rejected by",
    Decision.RESPOND: "Answered by",
}
_ENDED = {
    ApprovalStatus.PENDING: "Waiting for a decision",
    ApprovalStatus.EXPIRED: "Expired without a decision",
    ApprovalStatus.CANCELLED: "Withdrawn, because the run ended",
    ApprovalStatus.SUPERSEDED: "Replaced by a new request, because its content changed",
}


def markdown_pieces(conversation: Conversation) -> Iterator[str]:
    """Yield the text of the file, a piece for each run and each turn."""
    yield _beginning(conversation)
    yield from _runs(conversation.parts(), "Message {number}")
    yield from _runs(conversation.parts_of_subagents(), "Subagent {subagent}")
    yield _files(conversation.files())
    yield END


def _beginning(conversation: Conversation) -> str:
    thread, usage = conversation.thread, conversation.usage()
    cost = None if usage.microusd is None else Decimal(usage.microusd) / MICRO
    lines = [
        f"# {inline(thread.title) or 'Conversation'}\n",
        f"- Agent: {inline(thread.agent.name)}",
        f"- Person: {inline(thread.owner.get_username())}",
        f"- Started: {_when(thread.created_at)}",
        f"- Exported: {_when(conversation.read_at)}",
        f"- Usage with subagents: {usage.tokens:,} tokens, {_cost(cost)}",
        f"- Conversation: {code(thread.pk)}",
    ]
    if thread.forked_from_id:
        lines.append(f"- Forked from the run {code(thread.forked_from_id)}")
    return "\n".join(lines) + "\n"


def _runs(parts: Iterator[RunHead | Turn], heading: str) -> Iterator[str]:
    head: RunHead | None = None
    for part in parts:
        if isinstance(part, RunHead):
            if head is not None:
                yield _end_of(head)
            head = part
            yield _start_of(head, heading)
        else:
            yield "".join(_turn(part))
    if head is not None:
        yield _end_of(head)


def _start_of(head: RunHead, heading: str) -> str:
    run = head.run
    title = heading.format(number=run.number, subagent=inline(run.subagent, 100))
    text = f"\n## {title}\n\n{_when(run.created_at)}, {_through(run)}\n"
    if head.uploads:
        names = (f"{code(file.original_name)} ({_size(file.size)})" for file in head.uploads)
        text += f"\nAttached files: {', '.join(names)}\n"
    return text


def _through(run: Run) -> str:
    if run.subagent:
        return f"a task of the run {code(run.parent_id or '')}"
    trigger: str | None = run.trigger_name  # type: ignore[attr-defined]  # annotated
    name = f" {inline(trigger)}" if trigger else ""
    return f"through {inline(run.source)}{name}"


def _turn(turn: Turn) -> Iterator[str]:
    """Yield the message, or the text of a reply, its calls, and the notes after it."""
    number = turn.number
    first, notes = turn.messages[0], turn.messages[1:]
    if first.position > 0:
        notes = turn.messages
    elif text := first.text.strip():
        if number:
            yield "\nThe agent:\n" if turn.calls else "\n### Answer\n"
        yield f"\n{quoted(text)}"
    for call in turn.calls:
        yield _call(call, number)
        for request in turn.decisions.get(call.pk, ()):
            yield f"\n{_decision(request)}\n"
    for note in notes:
        yield _note(note)


def _call(call: ToolCall, number: int) -> str:
    given = call.effective_input
    output, is_cut = _output_of(call)
    shown_input = json.dumps(given, indent=2, ensure_ascii=False)
    parts = [f"Step {number}: <code>{in_html(call.tool)}</code>"]
    if headline := _headline(given):
        parts.append(f" <code>{in_html(headline, 80)}</code>")
    parts.append(f", {call.status}{_duration(call)}")
    text = _folded("".join(parts), fenced(cut_text(shown_input, INPUT_CHARACTERS), "json"))
    if output:
        lead = "Output, cut:" if is_cut else "Output:"
        text += f"{lead}\n\n{fenced(output)}\n"
    return f"{text}</details>\n"


def _folded(summary: str, content: str) -> str:
    """Return the start of a folded block. Its blank lines end the HTML before the content."""
    return f"\n<details><summary>{summary}</summary>\n\n{content}\n"


def _headline(given: object) -> str:
    """Return the first text of an input, such as a command or a path."""
    values = given.values() if isinstance(given, dict) else ()
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def _output_of(call: ToolCall) -> tuple[str, bool]:
    content = call.result_content
    if isinstance(content, list):
        texts = (str(block.get("text", f"[{block.get('type')}]")) for block in content)
        content = "\n".join(texts)
    whole = content or ""
    lines = whole[: OUTPUT_CHARACTERS + 1].split("\n")
    text = cut_text("\n".join(lines[:OUTPUT_LINES]), OUTPUT_CHARACTERS)
    return text, text != whole


def _duration(call: ToolCall) -> str:
    if call.started_at is None or call.finished_at is None:
        return ""
    return f", {max(0.0, (call.finished_at - call.started_at).total_seconds()):.1f} s"


def _note(note: Message) -> str:
    summary = f"Note to the model ({in_html(note.author or 'unknown', 60)})"
    return f"{_folded(summary, fenced(cut_text(note.text, NOTE_CHARACTERS)))}</details>\n"


def _decision(request: ApprovalRequest) -> str:
    parts = []
    if request.first_approved_at is not None:
        first = f"First approved by {_name(request.first_approver)}"
        parts.append(f"{first}, {_when(request.first_approved_at)}.")
    if request.status != ApprovalStatus.DECIDED:
        parts.append(f"{_ENDED.get(ApprovalStatus(request.status), request.status)}.")
    if request.decision:
        when = f", {_when(request.decided_at)}" if request.decided_at else ""
        decided = _DECIDED[Decision(request.decision)]
        parts.append(f"{decided} {_name(request.decided_by)}{when}.")
    if request.reason:
        parts.append(f"Reason: {inline(request.reason, REASON_CHARACTERS)}")
    return f"**Decision:** {' '.join(parts)}"


def _name(user: User | None) -> str:
    return inline(user.get_username()) if user is not None else "somebody"


def _end_of(head: RunHead) -> str:
    run = head.run
    text = "".join(f"\n{_decision(request)}\n" for request in head.requests)
    if run.error_code:
        message = fenced(cut_text(run.error_message, NOTE_CHARACTERS))
        text += f"\nError {code(run.error_code)}:\n\n{message}"
    clock: RunClock = run.clock
    steps = f"{clock.turn} step{'' if clock.turn == 1 else 's'}"
    used = f"{steps}, {clock.total_tokens:,} tokens, {_cost(clock.cost)}"
    return f"{text}\n{run.status.capitalize()}, {used}.\n"


def _files(files: Files) -> str:
    if files.problem:
        problem = inline(files.problem, REASON_CHARACTERS)
        return f"\n## Files\n\nThe files are unavailable: {problem}\n\n"
    if not files.listed:
        return "\n"
    lines = [f"- {code(file.path)} ({_size(file.size)})" for file in files.listed[:SHOWN_FILES]]
    if files.is_cut or len(files.listed) > SHOWN_FILES:
        lines.append("- … and more")
    return "\n## Files\n\n" + "\n".join(lines) + "\n\n"


def _size(size: int) -> str:
    return f"{size:,} bytes"


def _cost(cost: Decimal | None) -> str:
    return "unknown cost" if cost is None else f"${cost:.4f}"


def _when(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"

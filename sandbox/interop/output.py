"""The text of a command as one stream, cut to a number of characters."""

from __future__ import annotations

from sandbox.result import ExecutionResult

_NOTE = "\n[... output cut here: {limit:,} characters are kept ...]\n"


def in_one_stream(command: str) -> str:
    """The shell command whose standard error goes where its output goes, in the order written.

    On a line of its own: a syntax error further down is then reported in the same stream.
    """
    return f"exec 2>&1\n{command}"


def combined_output(result: ExecutionResult, limit: int) -> tuple[str, bool]:
    """What was printed and how it was ended, `limit` characters at most; whether any was cut.

    The beginning and the end are kept.
    """
    text = result.stdout + result.stderr
    if len(text) <= limit:
        return text, result.truncated
    note = _NOTE.format(limit=limit)
    room = limit - len(note)
    if room < 2:
        return text[:limit], True
    head = room // 2
    return text[:head] + note + text[head - room :], True

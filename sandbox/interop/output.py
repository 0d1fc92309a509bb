"""The output of a command as one stream, cut to a number of characters."""

from __future__ import annotations

from sandbox.result import ExecutionResult

_NOTE = "\n[... output cut here: {limit:,} characters are kept ...]\n"


def in_one_stream(command: str) -> str:
    """Return a shell command that writes its standard error to standard output, in order.

    The redirection is on a separate line, so that syntax errors appear in the same stream.
    """
    return f"exec 2>&1\n{command}"


def combined_output(result: ExecutionResult, limit: int) -> tuple[str, bool]:
    """Return the output and a note about the end, at most `limit` characters, and whether it was
    cut. The start and the end are kept.
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

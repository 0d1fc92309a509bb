"""Formatters that write a log record as one line of text or JSON.

A line has the time, the level, the logger, the message and the fields of `extra`. It contains no
terminal codes or hidden characters, and text that looks like a key is masked. Text has a traceback
in further lines, JSON in a field.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from textwrap import indent
from typing import ClassVar

from agents.database_away import is_away
from agents.hidden_text import visible
from agents.telemetry.log_context import log_context
from agents.telemetry.spans import mask_secrets

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
LONGEST = 10_000
"""Maximum characters of a message or a field. The rest is cut."""
LONGEST_TRACEBACK = 50_000


def _fields(record: logging.LogRecord) -> Iterator[tuple[str, str | int | float]]:
    for name, value in vars(record).items():
        if name in _STANDARD or name.startswith("_"):
            continue
        if isinstance(value, str | int | float):
            yield name, value


class DatabaseAway(logging.Filter):
    """Shortens a record to one line, without a traceback, if the database is unreachable.

    Otherwise, each process would write tracebacks at a restart of PostgreSQL.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if is_away(error):
            record.msg, record.args = f"{_message(record)}: {error}", None
            record.exc_info = record.exc_text = None
        return True


class LineFormatter(logging.Formatter):
    """Writes lines such as `2026-01-31T12:00:00 INFO agents.engine claimed run_id=… thread_id=…`.

    The time is in the server's time zone, `TIME_ZONE`. A traceback follows in indented lines.
    """

    default_time_format = "%Y-%m-%dT%H:%M:%S"

    def format(self, record: logging.LogRecord) -> str:
        # A line break in a logged name must not look like the start of another record.
        message = _one_line(_message(record))
        fields = "".join(
            f" {_one_line(name)}={_one_line(value) if isinstance(value, str) else value}"
            for name, value in _fields(record)
        )
        line = (
            f"{self.formatTime(record, self.default_time_format)} {record.levelname} "
            f"{record.name} {message}{fields}"
        )
        if record.exc_info:
            # Indent it: text in an error must not look like a separate record.
            traceback = visible(_end_of(self.formatException(record.exc_info)))
            line += "\n" + indent(traceback, "  | ", _every)
        return line


def _every(line: str) -> bool:
    return True


def _one_line(text: str) -> str:
    escaped = json.dumps(_harmless(text), ensure_ascii=False)[1:-1].replace('\\"', '"')
    return visible(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped))


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object in a line, in ASCII.

    Each object has `time`, `level`, `logger`, `message` and `pid`, and `exception` with the
    traceback of an error. A field of `extra` with one of these names, or without a plain value, is
    omitted.
    """

    RESERVED: ClassVar = frozenset({"time", "level", "logger", "message", "pid", "exception"})

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, str | int | float] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _harmless(_message(record)),
            "pid": record.process or 0,
        }
        told |= log_context()
        for name, value in _fields(record):
            if name not in self.RESERVED:
                told[_harmless(name)] = _harmless(value) if isinstance(value, str) else value
        if record.exc_info:
            told["exception"] = _end_of(self.formatException(record.exc_info))
        # ASCII escapes line separators, terminal codes and lone surrogates like line breaks. JSON
        # has no infinity.
        return json.dumps({name: _number(value) for name, value in told.items()})


def _number(value: str | int | float) -> str | int | float:
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    return value if isinstance(value, int | str) else str(value)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # the arguments do not fit the text
        return str(record.msg)


def _harmless(text: str) -> str:
    # Mask before cutting: half a key at the cut would not look like a key.
    return mask_secrets(text[: 2 * LONGEST])[:LONGEST]


def _end_of(traceback: str) -> str:
    return mask_secrets(traceback[-2 * LONGEST_TRACEBACK :])[-LONGEST_TRACEBACK:]

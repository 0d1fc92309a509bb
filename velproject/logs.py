"""One log line a record: time, level, logger, message, then the fields given as `extra`."""

from __future__ import annotations

import json
import logging

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """`2026-01-31T12:00:00Z INFO agents.engine claimed run_id=… thread_id=…`"""

    default_time_format = "%Y-%m-%dT%H:%M:%S"

    def format(self, record: logging.LogRecord) -> str:
        # A line break in a logged name must not look like a second record.
        message = json.dumps(record.getMessage(), ensure_ascii=False)[1:-1].replace('\\"', '"')
        fields = "".join(
            f" {name}={value}"
            for name, value in vars(record).items()
            if name not in _STANDARD and not name.startswith("_")
            if isinstance(value, str | int | float)
        )
        line = (
            f"{self.formatTime(record, self.default_time_format)} {record.levelname} "
            f"{record.name} {message}{fields}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

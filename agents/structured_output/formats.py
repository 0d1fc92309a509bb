"""Text formats of JSON Schema, each checked in linear time."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime, time

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d{1,9})?(Z|z|[+-]\d\d:\d\d)", re.ASCII)
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]{1,63}(\.[^@\s.]{1,63}){0,8}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[^\s<>\"{}|\\^`]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _reads(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and _reads(time.fromisoformat, _cut(text))


def _is_date_time(text: str) -> bool:
    day, clock = text[:10], text[11:]
    return (
        text[10:11] in ("T", "t")
        and _DATE.fullmatch(day) is not None
        and _TIME.fullmatch(clock) is not None
        and _reads(datetime.fromisoformat, f"{day}T{_cut(clock)}")
    )


def _cut(clock: str) -> str:
    """Cut the fraction of a second to six digits, the maximum in Python."""
    return re.sub(r"(\.\d{6})\d+", r"\1", clock).replace("z", "Z")


def _is_address(version: int) -> Callable[[str], bool]:
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return lambda text: "%" not in text and _reads(kind, text)


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
}
"""Checks by format name in JSON Schema."""

"""Request limits over all web processes, without a write for each request.

A process takes a share of a minute's requests with one statement and uses it from memory. The row
in the database decides, so the limit holds for any number of processes and any cache of the
project. Each process can hold an unused share, so a person may be refused early, by up to a
fiftieth of the limit for each process. A person gets more than the limit only on a full disk: then
each process counts alone.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection

from agents.client_address import client_address
from agents.disk_space import full_disk
from agents.models import RequestCount

MINUTE = 60
SHARES = 50
"""The divisor of the limit for the share that a process takes at a time."""
KEEP_MINUTES = 60


@dataclass(slots=True)
class _Share:
    minute: int
    left: int = 0
    asked: int = 0
    """Requests of this process while the database could not count."""
    is_used_up: bool = False


_shares: dict[str, _Share] = {}
_lock = threading.Lock()
_cleared = 0


def wait_for(subject: str, per_minute: int) -> int:
    """Count one request of `subject`. Return 0 if it is allowed, else the seconds to wait.

    A limit of 0 allows everything and writes nothing.
    """
    if per_minute <= 0:
        return 0
    minute = int(time.time() // MINUTE)
    with _lock:
        share = _share_of(subject, minute)
        if share.left > 0:
            share.left -= 1
            return 0
        if share.is_used_up:
            return _until_next(minute)
    # Without the lock: other people's requests do not wait for this statement.
    requested = max(1, per_minute // SHARES)
    used = _take_or_count(subject, minute, requested)
    granted = requested - max(0, used - per_minute)
    with _lock:
        share = _share_of(subject, minute)
        if granted <= 0:
            share.is_used_up = True
            return _until_next(minute)
        share.left += granted - 1
    return 0


def forget_shares() -> None:
    """Remove all shares: this process asks the database again."""
    with _lock:
        _shares.clear()


def _share_of(subject: str, minute: int) -> _Share:
    global _cleared
    if _cleared != minute:  # shares of other minutes are invalid
        _cleared = minute
        _shares.clear()
    return _shares.setdefault(subject, _Share(minute))


def _until_next(minute: int) -> int:
    return max(1, math.ceil((minute + 1) * MINUTE - time.time()))


def _take_or_count(subject: str, minute: int, count: int) -> int:
    """Call `_take`. On a full disk this process counts alone, so people can still read."""
    try:
        return _take(subject, minute, count)
    except DatabaseError as error:
        if not full_disk(error):
            raise
    with _lock:
        share = _share_of(subject, minute)
        share.asked += count
        return share.asked


def _take(subject: str, minute: int, count: int) -> int:
    """Add to the row of this minute, and return its sum. Sometimes delete old rows."""
    table = RequestCount._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" (subject, minute, used) VALUES (%s, %s, %s)'  # noqa: S608
            " ON CONFLICT (subject) DO UPDATE SET"
            f' used = CASE WHEN "{table}".minute = excluded.minute'
            f' THEN "{table}".used + excluded.used ELSE excluded.used END,'
            " minute = excluded.minute RETURNING used",
            [subject, minute, count],
        )
        used = int(cursor.fetchone()[0])
    if used == count:  # the first request of this minute
        RequestCount.objects.filter(minute__lt=minute - KEEP_MINUTES).delete()
    return used


def network_of(meta: Mapping[str, Any]) -> str:
    """Return the network of the client's address, for example `192.0.2.7/32`.

    For IPv6 it is the /64 network, which one person has as a whole. `meta` is in the form of
    Django's `request.META`. Returns "unknown" without a valid address.
    """
    peer, forwarded = (str(meta.get(name, "")) for name in ("REMOTE_ADDR", "HTTP_X_FORWARDED_FOR"))
    try:
        address = ipaddress.ip_address(client_address(peer, forwarded))
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # of a dual-stack socket: all of IPv4 would be one network
    return str(ipaddress.ip_network((address, 32 if address.version == 4 else 64), strict=False))

"""Connect to a name: resolve it once, check every address, and use only checked addresses."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from ipaddress import IPv4Address

from sandbox.linux.egress.destinations import Destinations
from sandbox.linux.egress.hosts import Address, Endpoint

_LOOKUPS = threading.BoundedSemaphore(64)
"""The limit of this process: a look-up cannot be interrupted and may take half a minute."""

_MOST_ADDRESSES = 4
"""How many addresses are tried, one after another."""


class Unreachable(Exception):
    """There is no connection. `forbidden`: it was refused without a try."""

    def __init__(self, reason: str, *, forbidden: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.forbidden = forbidden


async def dial(endpoint: Endpoint, world: Destinations, seconds: float) -> socket.socket:
    """Return a non-blocking socket that is connected to `endpoint`. Raises `Unreachable`.

    No name is resolved after the check, so a name that changes its address has no effect.
    """
    try:
        async with asyncio.timeout(seconds):
            addresses = await _addresses(endpoint, world)
            for address in addresses:
                refusal = world.refusal(address)
                if refusal is not None:
                    raise Unreachable(refusal, forbidden=True)
            return await _connect(addresses, endpoint.port)
    except TimeoutError:
        raise Unreachable(f"no connection within {seconds:g} s", forbidden=False) from None


async def _addresses(endpoint: Endpoint, world: Destinations) -> list[Address]:
    if endpoint.address is not None:
        return [endpoint.address]
    try:
        addresses = await _off_the_loop(lambda: world.resolve(endpoint.host))
    except OSError as error:
        raise Unreachable(f"its name has no address ({error.strerror})", forbidden=False) from error
    if not addresses:
        raise Unreachable("its name has no address", forbidden=False)
    return addresses


async def _connect(addresses: list[Address], port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    problem = ""
    for address in addresses[:_MOST_ADDRESSES]:
        family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
        try:
            connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            problem = error.strerror or str(error)
            continue
        try:
            await loop.sock_connect(connection, (str(address), port))
        except OSError as error:
            connection.close()
            problem = error.strerror or str(error)
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise Unreachable(f"no connection ({problem})", forbidden=False)


async def _off_the_loop(function: Callable[[], list[Address]]) -> list[Address]:
    """Run it on a daemon thread, because the command may end before the look-up."""
    if not _LOOKUPS.acquire(blocking=False):
        raise Unreachable("too many simultaneous name look-ups", forbidden=False)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Address]] = loop.create_future()

    def deliver(addresses: list[Address] | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(addresses or [])

    def work() -> None:
        addresses: list[Address] | None = None
        failure: Exception | None = None
        try:
            addresses = function()
        except Exception as error:  # noqa: BLE001 - raised again in the waiting task
            failure = error
        finally:
            _LOOKUPS.release()
        try:
            loop.call_soon_threadsafe(deliver, addresses, failure)
        except RuntimeError:
            pass  # the loop is closed: the command has ended

    try:
        threading.Thread(target=work, name="vel-egress-lookup", daemon=True).start()
    except RuntimeError:
        _LOOKUPS.release()
        raise
    return await answer

"""Rules for the hosts and ports that a sandbox may use, checked before a name is resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox.errors import SandboxSetupError
from sandbox.linux.egress.hosts import Endpoint, HostRefused, parse_endpoint, parse_host
from sandbox.policy import Network

WEB_PORTS = frozenset({80, 443})
"""The ports of an entry without a port."""

MOST_ENTRIES = 500
_MAIL = 25


class RuleError(SandboxSetupError):
    """Raised for an invalid entry of an allow-list. The message names the entry."""


class Rules(Protocol):
    def refusal(self, endpoint: Endpoint) -> str | None:
        """Return why `endpoint` may not be reached; None if its name and port are allowed."""

    @property
    def checks_server_name(self) -> bool:
        """Whether a TLS connection to an allowed name must use the same server name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an allow-list.

    With `subdomains`, it matches names below `host`, but not `host` itself.
    """

    host: str
    ports: frozenset[int] = WEB_PORTS
    subdomains: bool = False

    def allows(self, endpoint: Endpoint) -> bool:
        if self.subdomains:
            named = endpoint.address is None and endpoint.host.endswith(f".{self.host}")
        else:
            named = endpoint.host == self.host
        return named and endpoint.port in self.ports


@dataclass(frozen=True, slots=True)
class Allowlist:
    entries: tuple[Entry, ...]
    checks_server_name: bool = True

    def refusal(self, endpoint: Endpoint) -> str | None:
        if any(entry.allows(endpoint) for entry in self.entries):
            return None
        return "not on the agent's allow-list"


@dataclass(frozen=True, slots=True)
class AnyHost:
    """Rule that allows every host, except port 25, which is mainly useful for spam.

    Addresses are still checked.
    """

    checks_server_name: bool = False

    def refusal(self, endpoint: Endpoint) -> str | None:
        return "port 25 (mail) is never allowed" if endpoint.port == _MAIL else None


def rules_for(network: Network, allowed_hosts: Sequence[str]) -> Rules:
    """Return the rules for a `network` that is not NONE. Raises `RuleError`."""
    return AnyHost() if network is Network.FULL else parse_allowlist(allowed_hosts)


def parse_allowlist(entries: Sequence[str]) -> Allowlist:
    """Return the rules for entries such as `pypi.org`, `*.example.org`, `api.example.com:8443`.

    `*.` matches only subdomains. The default ports are 80 and 443. Raises `RuleError`, which names
    the first invalid entry.
    """
    if isinstance(entries, str) or len(entries) > MOST_ENTRIES:
        raise RuleError(f"Give a list of at most {MOST_ENTRIES} hosts.")
    return Allowlist(tuple(parse_entry(entry) for entry in entries))


def parse_entry(text: object) -> Entry:
    if not isinstance(text, str):
        raise RuleError(f"{text!r} is not a host; write it in quotes.")
    subdomains = text.startswith("*.")
    name = text.removeprefix("*.")
    if text == "*":
        raise RuleError("'*' would allow every host: use the network 'full' instead.")
    if "/" in name:
        raise RuleError(f"{text!r} is the address of a page; give only its host.")
    if not name.isascii():
        raise RuleError(f"{text!r} is not ASCII; give the name in its xn-- form{_idna(name)}.")
    try:
        if subdomains:
            _, address = parse_host(name.partition(":")[0])
            if address is not None:
                raise HostRefused("an address, which has no subdomains")
        endpoint = parse_endpoint(name, default_port=0)
    except HostRefused as error:
        raise RuleError(
            f"{text!r} is {error}. Write hosts as pypi.org, *.example.org or api.example.com:8443."
        ) from None
    ports = frozenset({endpoint.port}) if endpoint.port else WEB_PORTS
    return Entry(endpoint.host, ports, subdomains)


def _idna(name: str) -> str:
    try:
        return f", {name.encode('idna').decode('ascii')}"
    except UnicodeError:
        return ""

"""Collect the hosts that files name. Hosts known for collecting data are warnings."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from skills_app.library.scan.finding import ScanFinding
from skills_app.library.scan.text import at, shown
from text_scanner.linear import compile_linear

MAX_HOSTS = 60
"""The maximum number of hosts that are listed."""
MAX_FOUND = 2_000
"""The maximum number of addresses that are examined in one file."""

_URL = compile_linear(
    rb"\b(?:https?|ftp|wss?|tcp|ssh|git)://(?:[^\s/@\"'<>]{1,100}@)?(\[[0-9a-f:]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?",
    any_case=True,
)
_ADDRESS = compile_linear(rb"(?:^|[^\w.])((?:\d{1,3}\.){3}\d{1,3})(?:[^\w.]|$)")
_COLLECTS = re.compile(
    r"(?:^|\.)(?:pastebin\.com|rentry\.(?:co|org)|glot\.io|hastebin\.com|ghostbin\.\w+|dpaste\.\w+|paste\.ee|0x0\.st|ix\.io|termbin\.com|justpaste\.it|telegra\.ph|"
    r"transfer\.sh|file\.io|gofile\.io|anonfiles\.com|bashupload\.com|temp\.sh|catbox\.moe|oshi\.at|"
    r"ngrok\.io|ngrok-free\.(?:app|dev)|ngrok\.app|trycloudflare\.com|serveo\.net|loca\.lt|localhost\.run|bore\.pub|pinggy\.\w+|"
    r"webhook\.site|requestbin\.\w+|pipedream\.net|requestcatcher\.com|beeceptor\.com|hookbin\.com|interact\.sh|oast\.\w+|oastify\.com|burpcollaborator\.net|canarytokens\.com|dnslog\.cn|"
    r"iplogger\.\w+|grabify\.link|bit\.ly|tinyurl\.com|is\.gd|t\.ly|cutt\.ly)$|\.onion$"
)
_CALLS = re.compile(
    rb"(?:discord(?:app)?\.com/api/webhooks/\d|api\.telegram\.org/bot\d|hooks\.slack\.com/services/T[0-9A-Z]{6,}/)",
    re.IGNORECASE,
)
_EXAMPLES = frozenset({"255.255.255.255", "8.8.8.8", "8.8.4.4", "1.1.1.1", "1.2.3.4"})


class Hosts:
    """The hosts in a package. The scanner adds those of one file after another."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[str, int]] = {}
        self.more = 0

    def look_at(self, path: str, data: bytes, *, code: bool) -> Iterator[ScanFinding]:
        if b"://" in data:
            for count, found in enumerate(_URL.finditer(data)):
                if count >= MAX_FOUND:
                    break
                host = found[1].decode().lower().strip(".")
                if host in self.seen:
                    continue
                if not self._note(host, path, found.start()):
                    continue
                if _COLLECTS.search(host):
                    message = (
                        f"{host} collects data, shortens addresses, or serves anonymous files."
                    )
                    yield at("warning", "collecting-host", path, data, found.span(), message)
                elif _is_public_address(host):
                    message = f"A numeric address, {host}, instead of a name."
                    yield at("warning", "raw-address", path, data, found.span(), message)
        if code:
            yield from self._bare(path, data)
        found = _CALLS.search(data)
        if found is not None:
            message = "A chat webhook, which accepts any data."
            yield at("warning", "collecting-host", path, data, found.span(), message)

    def _bare(self, path: str, data: bytes) -> Iterator[ScanFinding]:
        for count, found in enumerate(_ADDRESS.finditer(data)):
            if count >= MAX_FOUND:
                return
            host = found[1].decode()
            if (
                host not in self.seen
                and _is_public_address(host)
                and self._note(host, path, found.start(1))
            ):
                message = f"A numeric address, {host}, instead of a name."
                yield at("note", "raw-address", path, data, found.span(1), message)

    def _note(self, host: str, path: str, offset: int) -> bool:
        if len(self.seen) >= 10 * MAX_HOSTS:
            self.more += 1
            return False
        self.seen[host] = (path, offset)
        return True

    def listed(self) -> Iterator[ScanFinding]:
        """Yield notes that list the first `MAX_HOSTS` hosts, and the number of the others.

        Each host is under the file that named it first.
        """
        by_path: dict[str, list[str]] = {}
        for host, (path, _) in list(self.seen.items())[:MAX_HOSTS]:
            by_path.setdefault(path, []).append(host)
        for path, hosts in by_path.items():
            for begin in range(0, len(hosts), 20):
                part = hosts[begin : begin + 20]
                yield ScanFinding(
                    "note", "hosts", path, 0, "Names these hosts.", shown(", ".join(part))
                )
        left_out = max(0, len(self.seen) - MAX_HOSTS) + self.more
        if left_out:
            yield ScanFinding("note", "hosts", "", 0, f"{left_out:,} more hosts are not listed.")


def _is_public_address(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    if host in _EXAMPLES or (address.version == 4 and int(host.split(".")[0]) < 4):
        return False  # versions of programs look like addresses
    documented = any(address in net for net in _DOCUMENTED if net.version == address.version)
    return address.is_global or documented


# Reserved hosts have no real servers, but honest code does not run downloads from them either.
_DOCUMENTED = [
    ipaddress.ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
]

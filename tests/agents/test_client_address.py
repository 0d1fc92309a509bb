"""The client's address behind proxies: values that any client can send are not trusted."""

from __future__ import annotations

from typing import Any

import pytest

from agents.client_address import client_address
from agents.models import AuditEntry
from agents.services.request_rates import network_of
from tests.agents.api.rows import client_for, make_user, post

PROXY = "10.0.0.1"


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "", PROXY),
        (0, "192.0.2.9", PROXY),
        (1, "192.0.2.9", "192.0.2.9"),
        (1, "1.1.1.1, 192.0.2.9", "192.0.2.9"),
        (2, "1.1.1.1, 192.0.2.9, 10.0.0.2", "192.0.2.9"),
        # Fewer entries than the operator's proxies add: the request came another way.
        (1, "", PROXY),
        (2, "192.0.2.9", PROXY),
        # Some proxies add ports.
        (1, "192.0.2.9:4711", "192.0.2.9"),
        (1, "[2001:DB8::1]:4711", "2001:db8::1"),
        (1, "2001:db8::1", "2001:db8::1"),
        # Not addresses.
        (1, "1.1.1.1, unknown", PROXY),
        (1, "1.1.1.1, ", PROXY),
        (1, "1.1.1.1, <script>", PROXY),
        (1, "1.1.1.1, [::1", "::1"),
        (1, "," * 10_000, PROXY),
    ],
)
def test_the_entry_of_the_operators_own_proxy_counts(
    proxies: int, forwarded: str, address: str, settings: Any
) -> None:
    settings.VEL = {**settings.VEL, "TRUSTED_PROXIES": proxies}
    assert client_address(PROXY, forwarded) == address


def test_limits_count_the_same_address(settings: Any) -> None:
    meta = {"REMOTE_ADDR": PROXY, "HTTP_X_FORWARDED_FOR": "1.1.1.1, 2001:db8:0:7::1"}
    assert network_of(meta) == f"{PROXY}/32"
    settings.VEL = {**settings.VEL, "TRUSTED_PROXIES": 1}
    assert network_of(meta) == "2001:db8:0:7::/64"


@pytest.mark.django_db
def test_the_audit_log_has_it(settings: Any) -> None:
    client = client_for(make_user("ann", superuser=True))
    sent = {"X-Forwarded-For": "1.1.1.1, 192.0.2.9"}
    for proxies in (0, 1):
        settings.VEL = {**settings.VEL, "TRUSTED_PROXIES": proxies}
        yaml = f"name: A\nslug: a{proxies}\n"
        assert post(client, "/api/v1/agents/import", {"yaml": yaml}, **sent).status_code == 200
    found = AuditEntry.objects.filter(action="agent.created").order_by("id")
    assert list(found.values_list("address", flat=True)) == ["127.0.0.1", "192.0.2.9"]


def test_ipv4_at_a_dual_stack_socket_is_its_own_network() -> None:
    """Otherwise one client's failures would count for all IPv4 clients."""
    assert network_of({"REMOTE_ADDR": "::ffff:192.0.2.7"}) == "192.0.2.7/32"

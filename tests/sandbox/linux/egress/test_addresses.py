"""Which addresses the proxy may connect to."""

import shutil
import subprocess
import sys
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.linux.egress.dialling import PublicInternet, RouteType, route_type, special_purpose

ROOT = Path(__file__).resolve().parents[4]

# fmt: off
NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",
    "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.192", "192.0.2.1", "192.168.1.1", "192.88.99.1", "198.18.0.1", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1",
    "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808", "100::1", "2001::1", "2001:0:7f00:1::1", "2001:2::1", "2001:10::1",
    "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "2606:4700::5efe:a00:1", "3fff::1",
    "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%lo",
    "fec0::1", "ff02::1", "2606:4700::1%eth0",
]
# fmt: on

PUBLIC = "1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 100.128.0.1 2606:4700::1111 2a00:1450::1"


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_not_public(text: str) -> None:
    assert special_purpose(ip_address(text))


@pytest.mark.parametrize("text", [*PUBLIC.split(), "64:ff9b::808:808"])
def test_public(text: str) -> None:
    assert special_purpose(ip_address(text)) is None


@given(st.ip_addresses(v=4))
def test_stricter_than_the_standard_library(address: IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert special_purpose(address)
    assert special_purpose(IPv6Address(f"::ffff:{address}"))
    assert special_purpose(IPv6Address(int(IPv6Address("2002::")) | int(address) << 80))


NAT64 = IPv6Network("64:ff9b::/96")


@given(st.ip_addresses(v=6))
def test_stricter_than_the_standard_library_for_ipv6(address: IPv6Address) -> None:
    if not address.is_global and address not in NAT64:
        assert special_purpose(address)


def test_the_kernel_knows_its_own_addresses() -> None:
    assert route_type(ip_address("127.0.0.1")) == RouteType.LOCAL
    assert route_type(ip_address("127.1.2.3")) == RouteType.LOCAL
    assert route_type(ip_address("255.255.255.255")) not in list(RouteType)


OWN_ADDRESS = """
import subprocess
from ipaddress import ip_address
from sandbox.linux.egress.dialling import PublicInternet
from sandbox.linux.egress.dialling import route_type
world = PublicInternet()
def say(text):
    print(world.refusal(ip_address(text)))
say("8.8.8.8")
for line in ("link set lo up", "addr add 8.8.8.8/32 dev lo", "route add local 9.9.9.0/24 dev lo",
             "route add default dev lo", "-6 addr add 2606:4700::53/128 dev lo nodad"):
    subprocess.run(["ip", *line.split()], check=True)
# The kernel adds the route to an IPv6 address a moment after the address.
show = ["ip", "-6", "route", "show", "table", "local"]
while "2606:4700::53" not in subprocess.run(show, capture_output=True, text=True).stdout:
    pass
for text in ("8.8.8.8", "9.9.9.9", "2606:4700::53", "1.1.1.1"):
    say(text)
"""


@pytest.mark.skipif(not shutil.which("ip"), reason="needs iproute2")
def test_a_public_address_of_this_host_is_refused() -> None:
    """In a separate network namespace, where the host has such addresses."""
    unshare = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", OWN_ADDRESS]
    done = subprocess.run(unshare, cwd=ROOT, capture_output=True, text=True, check=True)
    own = "its address belongs to this host"
    lines = done.stdout.splitlines()
    assert lines[0].startswith("this host has no route to it")
    assert lines[1:] == [own, own, own, "None"]


def test_the_public_internet_refuses_private_addresses_by_kind() -> None:
    assert "link-local" in str(PublicInternet().refusal(ip_address("169.254.169.254")))


def test_names_are_absolute_and_come_from_the_resolver() -> None:
    with pytest.raises(OSError, match=r"."):
        PublicInternet().resolve("no-such-name.invalid")

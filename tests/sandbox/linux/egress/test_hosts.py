"""Hosts, ports and allow-lists have one accepted form."""

import socket
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.linux.egress.hosts import HostRefused, displayed, parse_endpoint
from sandbox.linux.egress.rules import AnyHost, RuleError, parse_allowlist, parse_entry

ODD = [
    *("2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5"),
    *("127.0.0.1.", "example.org.", "example..org", ".example.org", "-a.org", "a-.org", "a_b.org"),
    *(
        "localhost",
        "",
        " ",
        "a b.org",
        "user@example.org",
        "user:pw@example.org",
        "ex\u0430mple.org",
    ),
    *("[example.org]", "[::1", "::1", "[::1%eth0]", "[fe80::1%25lo]", "[127.0.0.1]", "[::1]x"),
    *("example.org:", "example.org:0", "example.org:65536", "example.org:+80", "example.org:080"),
    *("example.org:80:80", "example.org:８０", "example.org:8e1", "a.0x7f", "a." + "b" * 64),
    *("127.0.0.1/8", "example.org/", "ex%61mple.org", "example.org\0.evil.org", "\x7f.org"),
    "x." * 126 + "org",
]


@pytest.mark.parametrize("text", ODD)
def test_unusual_forms_are_refused(text: str) -> None:
    with pytest.raises(HostRefused):
        parse_endpoint(text, 443)


def test_one_form_for_each_host() -> None:
    assert parse_endpoint("PyPI.org", 80).host == "pypi.org"
    assert parse_endpoint("a.example.org:8443").port == 8443
    assert parse_endpoint("[2606:4700::1111]:443").address == ip_address("2606:4700::1111")
    assert parse_endpoint("[0:0::1]", 80).host == "::1"
    assert parse_endpoint("93.184.216.34", 80).address == ip_address("93.184.216.34")
    with pytest.raises(HostRefused):
        parse_endpoint("example.org")


@given(st.text(max_size=40) | st.from_regex(r"[0-9a-fxX.:\[\]]{1,40}", fullmatch=True))
def test_accepted_hosts_mean_the_same_to_the_system(text: str) -> None:
    try:
        endpoint = parse_endpoint(text, 80)
    except HostRefused:
        return
    assert parse_endpoint(endpoint.authority, 80) == endpoint
    if endpoint.address is not None:
        assert ip_address(endpoint.host) == endpoint.address
    else:
        with pytest.raises(OSError, match="illegal IP"):
            socket.inet_aton(endpoint.host)


@given(st.text())
def test_displayed_hosts_are_harmless(text: str) -> None:
    shown = displayed(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= 253
    assert not set(shown) & set("<>&\"'`()\\/ ")


def test_rules_allow_only_the_named_hosts() -> None:
    rules = parse_allowlist(["pypi.org", "*.Example.org", "api.example.com:8443", "9.9.9.9"])
    allowed = "pypi.org:443 pypi.org:80 a.example.org:443 a.b.example.org:80 "
    allowed += "api.example.com:8443 9.9.9.9:443"
    refused = "example.org:443 xpypi.org:443 a.pypi.org:443 pypi.org:22 evilexample.org:443 "
    refused += "api.example.com:443 pypi.org.evil.com:443 9.9.9.8:443 a.example.org:8443"
    for text in allowed.split():
        assert rules.refusal(parse_endpoint(text)) is None, text
    for text in refused.split():
        assert rules.refusal(parse_endpoint(text)) == "not on the agent's allow-list", text
    assert parse_allowlist([]).refusal(parse_endpoint("pypi.org:443"))


def test_mail_is_never_allowed_to_every_host() -> None:
    assert AnyHost().refusal(parse_endpoint("example.org:25"))
    assert AnyHost().refusal(parse_endpoint("example.org:8080")) is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("*", "network 'full'"),
        ("https://pypi.org/simple", "only its host"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("*.com", r"'\*.com'"),
        ("*.1.2.3.4", "no subdomains|dotted quad"),
        ("*.9.9.9.9", "dotted quad|no subdomains"),
        ("a.*.org", "an invalid host name"),
        ("pypi.org:http", "port"),
        ("pypi.org:", "port"),
        ("localhost", "without a dot"),
        ("", "''"),
        (7, "7"),
    ],
)
def test_a_bad_entry_is_named(entry: object, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        parse_entry(entry)
    with pytest.raises(RuleError):
        parse_allowlist(["pypi.org", entry])  # type: ignore[list-item]


def test_a_list_is_required() -> None:
    with pytest.raises(RuleError, match="list"):
        parse_allowlist("pypi.org")

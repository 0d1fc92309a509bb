"""The address of `vel up` on its machine, which links in notifications use."""

from __future__ import annotations

import pytest

from velproject.cli.commands.machines.up import local_url


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000"),
        ("localhost", "http://localhost:9000"),
        ("192.0.2.7", "http://192.0.2.7:9000"),
        ("0.0.0.0", "http://127.0.0.1:9000"),
        ("::", "http://127.0.0.1:9000"),
        ("::1", "http://[::1]:9000"),
        ("2001:db8::7", "http://[2001:db8::7]:9000"),
    ],
)
def test_the_address_of_a_host(host: str, url: str) -> None:
    assert local_url(host, 9000) == url

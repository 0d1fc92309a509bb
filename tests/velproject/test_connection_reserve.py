"""A served site in which a few users try to occupy all connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from urllib.request import Request, urlopen

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.hang import HANG
from tests.support.runs import wait_until
from tests.support.site import Site, migrated_site

NAMES = ("olga", "peter", "rosa")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with at most six persistent connections of eight, and at most three for a person."""
    site = migrated_site(tmp_path_factory.mktemp("small"))
    site.environment["VEL_CONNECTIONS"] = "8"
    try:
        for name in NAMES:
            site.do("make_user", name=name)
        site.start_server()
        yield site
    finally:
        site.close()


def opened(stack: ExitStack, site: Site, token: str) -> ClientConnection:
    url = f"ws://localhost:{site.port}/ws/approvals/"
    headers = {"Authorization": f"Token {token}"}
    socket = connect(url, additional_headers=headers, open_timeout=HANG, close_timeout=HANG)
    return stack.enter_context(socket)


def refusal(socket: ClientConnection) -> int:
    assert '"type": "error"' in str(socket.recv(timeout=HANG))
    with pytest.raises(ConnectionClosed) as closed:
        socket.recv(timeout=HANG)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def status(site: Site, path: str, token: str = "") -> int:
    headers = {"Authorization": f"Token {token}"} if token else {}
    with urlopen(Request(site.url + path, headers=headers), timeout=HANG) as answer:
        return int(answer.status)


@pytest.mark.slow
def test_sockets_leave_room_for_others_and_for_other_requests(small: Site) -> None:
    tokens = [small.do("make_token", user=name, scopes=["read"]) for name in NAMES]
    olgas, peters, rosas = tokens
    with ExitStack() as stack:
        for token in (olgas, peters):
            for _ in range(3):
                assert '"pending"' in str(opened(stack, small, token).recv(timeout=HANG))
            with ExitStack() as one:
                assert refusal(opened(one, small, token)) == 4429
        with ExitStack() as one:
            assert refusal(opened(one, small, rosas)) == 4503
        assert status(small, "/healthz") == status(small, "/login/") == 200
        assert status(small, "/api/v1/runs", rosas) == status(small, "/api/v1/runs", olgas) == 200

    def is_let_in() -> bool:
        with ExitStack() as one:
            return '"pending"' in str(opened(one, small, rosas).recv(timeout=HANG))

    wait_until(is_let_in, "that places are given back")

"""A hostile program cannot harm its client permanently."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents.features.mcp_client.protocol.connection import Connection
from agents.features.mcp_client.protocol.definitions import Listing
from agents.features.mcp_client.protocol.errors import McpError
from sandbox.reaper import kill_marked
from tests.support.hang import HANG
from tests.support.mcp_servers import plain_connection, sandboxed

pytestmark = pytest.mark.bubblewrap


@contextmanager
def opened(mode: str = "") -> Iterator[Connection]:
    connection = plain_connection(mode, marker=f"hostile-{mode}")
    try:
        connection.open().result(HANG)
        yield connection
    finally:
        connection.close()
        connection.join()
        assert kill_marked([f"hostile-{mode}"]) == 0


def listing_of(mode: str) -> Listing:
    with opened(mode) as connection:
        return connection.listing().result(HANG)


def failure(mode: str, seconds: float = 20.0) -> McpError:
    with opened(mode) as connection:
        with pytest.raises(McpError) as caught:
            connection.call("say", {"text": "x"}, seconds).result(HANG)
        return caught.value


def answer(mode: str) -> str:
    with opened(mode) as connection:
        result = connection.call("say", {"text": "hello"}, 20).result(HANG)
        return str(result["content"][0]["text"])


def test_a_call_goes_there_and_back_and_the_process_is_gone_afterwards() -> None:
    assert answer("") == "1: hello"


def test_a_server_runs_without_the_hosts_account_and_environment() -> None:
    uid, pid, place, variables = json.loads(answer("ids").partition(": ")[2])
    assert uid not in (0, os.geteuid()) or os.geteuid() != 0
    assert pid < 10  # its own PID namespace
    assert place == "/home/sandbox"
    assert "VEL_DATA_DIR" not in variables
    assert "DJANGO_SETTINGS_MODULE" not in variables


def test_ten_thousand_tools_are_refused() -> None:
    with pytest.raises(McpError, match="more than 128 tools"):
        listing_of("many")


def test_a_list_that_does_not_end_is_given_up() -> None:
    with pytest.raises(McpError, match="does not end"):
        listing_of("endless")


def test_a_description_of_ten_megabytes_ends_the_connection() -> None:
    with pytest.raises(McpError, match="message of over 4,194,304 bytes"):
        listing_of("long")


def test_a_long_description_is_not_cut_but_refused() -> None:
    listing = listing_of("wordy")
    assert [tool.name for tool in listing.tools] == ["fine"]
    assert listing.refused == (("say", "its description has over 8,000 characters"),)


def test_two_tools_with_one_name_are_both_refused() -> None:
    listing = listing_of("twins")
    assert [tool.name for tool in listing.tools] == ["a.b", "a_b"]
    assert listing.refused == (("say", "another tool has the same name"),)


def test_notifications_without_end_are_cut_off() -> None:
    assert "messages without end" in failure("flood").message


def test_an_answer_of_a_hundred_megabytes_is_cut_off() -> None:
    problem = failure("huge", HANG)
    assert "message of over 4,194,304 bytes" in problem.message
    assert problem.unsure


def test_deeply_nested_brackets_are_not_a_message() -> None:
    assert failure("bomb", 1.0).code == "timeout"


def test_bytes_that_are_not_text_are_skipped() -> None:
    assert answer("latin") == "1: hello"


def test_models_roots_and_questions_are_refused() -> None:
    sampled, roots, elicited = json.loads(answer("asks").partition(": ")[2])
    assert all("error" in said and "result" not in said for said in (sampled, roots, elicited))


def test_the_error_of_a_dead_server_is_reported() -> None:
    problem = failure("dies")
    assert problem.unsure
    assert "exit code 3: out of luck" in problem.message


def test_a_silent_server_is_abandoned_in_time() -> None:
    assert failure("silent", 0.5).code == "timeout"


def test_a_program_without_mcp_is_abandoned_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.features.mcp_client.protocol.connection.OPEN_SECONDS", 0.5)
    connection = Connection("deaf", sandboxed("/usr/bin/sleep", "60", marker="hostile-deaf"))
    with pytest.raises(McpError, match="did not answer"):
        connection.open().result(HANG)
    connection.join()
    assert kill_marked(["hostile-deaf"]) == 0


def test_a_missing_program_is_reported() -> None:
    connection = Connection("gone", sandboxed("/usr/bin/no-such-program"))
    with pytest.raises(McpError, match="no-such-program"):
        connection.open().result(HANG)
    connection.join()


def test_it_reaches_no_port_of_the_host() -> None:

    with socket.create_server(("127.0.0.1", 0)) as listening, opened("net") as connection:
        port = str(listening.getsockname()[1])
        said = connection.call("say", {"text": port}, 20).result(HANG)
    assert "refused" in said["content"][0]["text"]


HOLDER = """
import sys
from tests.support.mcp_servers import plain_connection
connection = plain_connection("", marker="hostile-orphan")
connection.open().result(30)
print("up", flush=True)
sys.stdin.read()
"""


def test_a_server_dies_with_the_process_that_talked_to_it() -> None:

    code = f"import os, django; django.setup(){HOLDER}"
    holder = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[5],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        first = _marked("hostile-orphan")
        pidfds = [os.pidfd_open(pid) for pid in first]
        assert pidfds
        holder.send_signal(signal.SIGKILL)
        for pidfd in pidfds:
            ready, _, _ = select.select([pidfd], [], [], 10)
            assert ready, "the server has outlived its worker"
            os.close(pidfd)
    finally:
        holder.kill()
        holder.communicate()


def _marked(marker: str) -> list[int]:
    """Return the sandboxed processes with this marker."""

    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"vel-sandbox:{marker}".encode() in place.read_bytes().split(b"\0"):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found

"""Real programs, also hostile ones, in real sandboxes."""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import create_sandbox
from sandbox.errors import SandboxSetupError, SandboxUnavailable
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.linux.egress import handover
from sandbox.linux.egress.connection import EgressLimits
from sandbox.linux.egress.handover import PROXY_PORT
from sandbox.linux.egress.proxy import Proxy
from sandbox.linux.egress.rules import RuleError
from sandbox.policy import Network
from tests.sandbox.linux.egress.world import Names, box_with, echo, plain_server, web_server
from tests.sandbox.places import sandbox_in, until, workspace_in

pytestmark = pytest.mark.bubblewrap

WHERE = f"127.0.0.1:{PROXY_PORT}"


def test_programs_use_the_proxy_automatically(place: Path) -> None:
    with web_server() as (port, seen):
        box = box_with(place, f"web.test:{port}")
        url = f"http://web.test:{port}"
        result = box.execute(
            f"curl -sS {url}/curl; curl -sSp {url}/tunnel; curl -sS -d abc {url}/post; echo; "
            f"git ls-remote {url}/repository.git; "
            f"python3 -c 'from urllib.request import urlopen; print(urlopen(\"{url}/py\").read())'"
        )
        assert result.stdout.splitlines()[:2] == ["hello from web.test"] * 2
        assert "3 abc" in result.stdout
        assert "b'hello from web.test\\n'" in result.stdout
        paths = [line.split()[1] for line in seen]
        assert paths[:3] == [b"/curl", b"/tunnel", b"/post"]
        assert b"/repository.git/info/refs?service=git-upload-pack" in paths
        assert paths[-1] == b"/py"
    [row] = result.connections
    assert (row.host, row.port, row.allowed, row.count) == ("web.test", port, True, 5)
    assert result.to_dict()["connections"][0]["host"] == "web.test"


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_https_goes_through_and_domain_fronting_does_not(place: Path) -> None:
    key, certificate = place / "key", place / "certificate"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a.test"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve(peer: socket.socket) -> None:
        try:
            with context.wrap_socket(peer, server_side=True) as tls:
                tls.recv(65536)
                tls.sendall(b"HTTP/1.0 200 OK\r\n\r\nsecret\n")
        except OSError:
            pass  # the client was cut off

    with plain_server(serve) as port:
        result = box_with(place, f"a.test:{port}").execute(
            f"curl -ksS https://a.test:{port}/; "
            f"curl -ksS --connect-to b.test:{port}:a.test:{port} https://b.test:{port}/"
        )
    assert result.stdout == "secret\n"
    assert [(row.host, row.allowed) for row in result.connections] == [
        ("a.test", True),
        ("a.test", False),
    ]
    assert "a server name that is not" in result.connections[1].reason


def test_other_hosts_are_refused_and_named(place: Path) -> None:
    box = box_with(place, "web.test:1")
    result = box.execute("curl -sS http://evil.test/; curl -sS https://evil.test/")
    assert "not on the agent's allow-list" in result.stdout
    assert "403" in result.stderr
    assert [(row.host, row.port, row.allowed) for row in result.connections] == [
        ("evil.test", 80, False),
        ("evil.test", 443, False),
    ]


def test_a_redirect_to_metadata_is_refused(place: Path) -> None:
    with web_server() as (port, _):
        result = box_with(place, f"web.test:{port}").execute(
            f"curl -sSL http://web.test:{port}/to-metadata; "
            "curl -sS --noproxy '' http://169.254.169.254/; curl -sS --noproxy '*' http://169.254.169.254/"
        )
    assert "allow-list" in result.stdout
    assert "Could" in result.stderr
    refused = [row for row in result.connections if not row.allowed]
    assert [(row.host, row.count) for row in refused] == [("169.254.169.254", 2)]


def test_create_sandbox_with_network_is_the_public_internet_only(place: Path) -> None:
    with web_server() as (port, seen):
        sandbox = create_sandbox(str(place / "work"), network=True)
        assert sandbox.network
        targets = (
            f"127.0.0.1:{port} [::1]:{port} 169.254.169.254 10.0.0.1 [::ffff:127.0.0.1]:{port}"
        )
        result = sandbox.execute(
            f"for host in {targets}; do curl -gsS -m 5 --noproxy '' http://$host/; done"
        )
        assert seen == []
    assert result.stdout.count("not public") == 5, result
    assert {row.allowed for row in result.connections} == {False}


def test_loopback_of_the_host_is_not_that_of_the_sandbox(place: Path) -> None:
    with web_server() as (port, seen):
        result = box_with(place).execute(f"curl -sS http://127.0.0.1:{port}/")
        assert "Could" in result.stderr
        assert (seen, result.connections) == ([], ())


ATTEMPTS = """
import ctypes, errno, os, socket
def attempt(what, function):
    try:
        function()
        print(what, "SUCCEEDED")
    except OSError as error:
        print(what, errno.errorcode[error.errno])
def tcp(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2); s.connect(address)
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("1.1.1.1", 53))
def unix(name):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(name)
attempt("tcp4", lambda: tcp(socket.AF_INET, ("1.1.1.1", 443)))
attempt("tcp6", lambda: tcp(socket.AF_INET6, ("2606:4700::1111", 443)))
attempt("udp", udp)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW, 0))
attempt("netlink", lambda: socket.socket(16, socket.SOCK_RAW, 0))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("abstract", lambda: unix(ABSTRACT))
attempt("proxy again", lambda: socket.create_server(("127.0.0.1", PORT)))
attempt("other's", lambda: tcp(socket.AF_INET, ("127.0.0.2", PORT)))
print("descriptors", sorted(os.listdir("/proc/self/fd")))
print("processes", [p for p in os.listdir("/proc") if p.isdigit()])
"""


def test_the_proxy_is_the_only_network_access(place: Path) -> None:
    abstract = f"\0vel-test-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(abstract)
        server.listen()
        code = f"ABSTRACT = {abstract!r}; PORT = {PROXY_PORT}\n{ATTEMPTS}"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(abstract)  # as all processes outside can
        result = box_with(place).execute_python(code)
    assert result.stdout.splitlines() == [
        "tcp4 ENETUNREACH",
        "tcp6 ENETUNREACH",
        "udp ENETUNREACH",
        "raw EPERM",
        "packet EAFNOSUPPORT",
        "netlink EAFNOSUPPORT",
        "vsock EAFNOSUPPORT",
        "abstract ECONNREFUSED",
        "proxy again EADDRINUSE",
        "other's ECONNREFUSED",
        "descriptors ['0', '1', '2', '3']",
        "processes ['1', '2']",
    ], result.stderr


def test_two_sandboxes_have_separate_lists(place: Path) -> None:
    """At the same time and on the same port, neither can use the hosts of the other."""
    with plain_server(echo) as port, ExitStack() as stack:
        first, second = box_with(place, f"a.test:{port}"), box_with(place, f"b.test:{port}")
        script = (
            f"touch /sandbox/shared/%s; until [ -e /sandbox/shared/%s ]; do sleep 0.01; done; "
            f"curl -sSp -m 1 http://a.test:{port}/; curl -sSp -m 1 http://b.test:{port}/; true"
        )
        results = {}

        def run(box: BubblewrapSandbox, own: str, other: str) -> None:
            results[own] = box.execute(script % (own, other))

        for arguments in ((first, "1", "2"), (second, "2", "1")):
            thread = threading.Thread(target=run, args=arguments)
            thread.start()
            stack.callback(thread.join)
    for name, own, other in (("1", "a.test", "b.test"), ("2", "b.test", "a.test")):
        decided = {row.host: row.allowed for row in results[name].connections}
        assert decided == {own: True, other: False}


def test_exit_codes_signals_streams_and_arguments_are_the_commands_own(place: Path) -> None:
    box = box_with(place, "a.test")
    result = box.execute("echo out; echo err >&2; exit 7")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 7)
    assert box.execute("kill -TERM $$").exit_code == 143
    assert box.execute("true").success
    assert box.start(["echo", "-c", "$HOME", "ü"]).wait().stdout == "-c $HOME ü\n"
    assert box.start("cat", stdin=b"given").wait().stdout == "given"
    assert box.execute_python("import sys; print(sys.flags.isolated)").stdout == "0\n"
    # Python ignores SIGPIPE and SIGXFSZ; the command must not inherit that.
    ignored = int(box.execute("grep SigIgn /proc/self/status").stdout.split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))
    late = box.execute("sleep 60", timeout=0.5)
    assert (late.timed_out, late.exit_code) == (True, 124)
    with pytest.raises(SandboxSetupError, match=r"no-such-program: No such file"):
        box.start(["no-such-program"]).wait()


def test_background_work_does_not_delay_the_end_and_loses_its_connections(place: Path) -> None:
    with plain_server(echo) as port:
        result = box_with(place, f"a.test:{port}").execute(
            f"(echo x; sleep 60) | curl -sNpT - telnet://a.test:{port} >out & "
            "until [ -s out ]; do sleep 0.01; done; echo done"
        )
    assert (result.stdout, result.exit_code) == ("done\n", 0)
    assert result.duration < 30
    assert result.connections[0].sent == 2


def test_a_flood_of_connections_ends_with_the_command(place: Path) -> None:
    flood = (
        "import socket\nheld = []\n"
        "for n in range(10000):\n"
        "    s = socket.socket(); s.setblocking(False)\n"
        f"    s.connect_ex(('127.0.0.1', {PROXY_PORT}))\n"
        "    held.append(s)\n"
        "    if len(held) > 900: held.pop(0).close()\n"
        "print('flooded')"
    )
    box = box_with(place, "a.test", limits=EgressLimits(head_seconds=1))
    most = 0
    before = len(os.listdir("/proc/self/fd"))
    execution = box.start_python(flood)
    watching = threading.Event()

    def watch() -> None:
        nonlocal most
        while not watching.wait(0.01):
            most = max(most, len(os.listdir("/proc/self/fd")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = execution.wait()
    watching.set()
    watcher.join()
    assert result.stdout == "flooded\n", result.stderr
    assert most < before + 32 * 2 + 40
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_the_proxy_leaves_nothing_behind_after_any_ending(place: Path) -> None:
    box = box_with(place, "a.test")
    box.execute("true")
    before = set(os.listdir("/proc/self/fd"))
    for command in ("true", "exit 1", "kill -9 $$", "sleep 60 &"):
        box.execute(command)
    box.execute("sleep 60", timeout=0.2)
    execution = box.start("sleep 60")
    execution.kill()
    assert execution.wait().cancelled
    with pytest.raises(SandboxSetupError):
        box.start(["no-such-program"]).wait()
    nowhere = BubblewrapSandbox(replace(box.policy, working_dir="/no/such/directory"))
    with pytest.raises(SandboxSetupError):
        nowhere.execute("true")
    until(lambda: set(os.listdir("/proc/self/fd")) <= before)
    assert not [t for t in threading.enumerate() if t.name.startswith("vel-egress")]


def test_if_the_proxy_cannot_start_nothing_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    box = box_with(place, "a.test")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(SandboxSetupError, match="proxy could not be started"):
            box.execute("touch ran")
    assert not (workspace_in(place).root / "workspace/ran").exists()


def test_if_the_socket_cannot_be_passed_out_nothing_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = handover._SOURCE.replace("127.0.0.1", "192.0.2.1")
    monkeypatch.setattr(handover, "_SOURCE", broken)
    with pytest.raises(SandboxSetupError, match="did not run"):
        box_with(place, "a.test").execute("touch ran")
    assert not (workspace_in(place).root / "workspace/ran").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_if_the_proxy_dies_connections_fail(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def die(self: Proxy, client: socket.socket) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Proxy, "_serve_one", die)
    result = box_with(place).execute(
        f"curl -sS -m 5 http://a.test/; curl -sS -m 5 http://a.test/; "
        f"curl -sS -m 5 --noproxy '*' http://{WHERE}/; echo $?"
    )
    assert result.stdout.strip() not in ("", "0")
    assert result.connections == ()


def test_without_network_commands_see_no_trace_of_the_proxy(place: Path) -> None:
    result = sandbox_in(place).execute(f"env | grep -i proxy; curl -sS http://{WHERE}/")
    assert result.stdout == ""
    assert "Could" in result.stderr


def test_a_bad_list_or_no_python_is_refused_before_anything_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuleError, match="bad host"):
        box_with(place, "bad host")
    monkeypatch.setattr(handover, "PYTHON", "/usr/bin/no-python")
    with pytest.raises(SandboxUnavailable, match="no-python"):
        box_with(place, "a.test")
    assert BubblewrapSandbox(replace(workspace_in(place).policy(), network=Network.NONE))


def test_names_of_this_host_are_refused_inside_too(place: Path) -> None:
    result = box_with(place, "name.test", world=Names(["127.0.0.1"])).execute(
        "curl -sS http://name.test/; curl -sS http://2130706433/ --noproxy ''"
    )
    assert "not public (loopback)" in result.stdout
    assert not any(row.allowed for row in result.connections)

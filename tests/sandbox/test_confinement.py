"""Real attacks from inside, which must all fail."""

import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.linux import launched
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Mount
from tests.sandbox.places import account, sandbox_in, workspace_in

pytestmark = pytest.mark.bubblewrap


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def test_files_of_the_host_do_not_exist(box: BubblewrapSandbox, place: Path) -> None:
    secret = place / "secret"
    secret.write_text("host-secret")
    secret.chmod(0o666)
    result = box.execute(
        f"cat /etc/shadow {secret} /proc/1/root{secret} /proc/1/cwd/../..{secret} "
        f"/proc/self/root/../../..{secret}; ls -A /root /home /var /mnt /sys /boot /srv /opt; "
        "cat /etc/passwd"
    )
    assert "host-secret" not in result.stdout + result.stderr
    assert result.stdout.split("\n") == [
        "/home:",
        "sandbox",
        "",
        "/var:",
        "tmp",
        "root:x:0:0:root:/:/usr/sbin/nologin",
        "nobody:x:65534:65534:nobody:/home/sandbox:/usr/bin/bash",
        "",
    ]


def test_a_link_to_the_host_shows_no_file(box: BubblewrapSandbox, place: Path) -> None:
    (place / "secret").write_text("host-secret")
    result = box.execute(f"ln -s {place}/secret link; ln -s / root; cat link root{place}/secret")
    assert result.exit_code == 1
    assert "host-secret" not in result.stdout


def test_writing_outside_the_workspace_is_refused(box: BubblewrapSandbox, place: Path) -> None:
    box.execute(
        f"mkdir -p {place}; echo x > {place}/planted; echo x > /usr/local/bin/planted; "
        f"echo x > /etc/planted; mkdir -p /tmp{place}; echo x > /sandbox/planted"
    )
    assert not (place / "planted").exists()
    assert not Path("/usr/local/bin/planted").exists()
    assert not Path("/etc/planted").exists()
    assert not (workspace_in(place).root / "planted").exists()


def test_another_threads_files_are_out_of_reach(place: Path) -> None:
    other = workspace_in(place, "other")
    (other.root / "workspace/other-private").write_text("other-secret")
    result = sandbox_in(place).execute(
        f"cat {other.root}/workspace/other-private; ls {place}; "
        "find / -name other-private 2>/dev/null"
    )
    assert result.stdout == ""


@pytest.mark.root
def test_the_account_of_one_thread_cannot_open_anothers_files(place: Path) -> None:
    """Even if a mount shows them."""
    other = workspace_in(place, "other")
    os.chown(other.root, account(1), account(1))  # as if it were another account
    policy = workspace_in(place).policy()
    mounts = (*policy.mounts, Mount(other.root, "/other"))
    result = BubblewrapSandbox(replace(policy, mounts=mounts)).execute("ls /other")
    assert "Permission denied" in result.stderr


def test_the_hosts_environment_is_not_in_proc(
    box: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "host-secret")
    assert box.execute("cat /proc/1/environ").stdout == ""
    everything = box.execute("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline")
    assert "host-secret" not in everything.stdout


def test_command_lines_show_only_the_marker(box: BubblewrapSandbox, place: Path) -> None:
    result = box.start("tr '\\0' '\\n' < /proc/1/cmdline", marker="token-1").wait()
    arguments = result.stdout.split("\n")
    assert arguments[0].endswith("/bwrap")
    assert arguments[1] == "--args"
    assert arguments[3:5] == ["--unsetenv", "vel-sandbox:token-1"]
    assert str(place) not in result.stdout
    assert "token-1" not in box.start("env", marker="token-1").wait().stdout


def test_processes_of_the_host_cannot_be_seen_or_signalled(box: BubblewrapSandbox) -> None:
    result = box.execute(f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()}; kill -9 -1")
    assert int(result.stdout) < 6
    assert "No such process" in result.stderr
    os.kill(os.getpid(), 0)


def test_the_first_process_cannot_be_killed_from_inside(box: BubblewrapSandbox) -> None:
    result = box.execute("kill -9 1; kill -STOP 1; kill -TERM 1; echo alive")
    assert (result.stdout, result.exit_code) == ("alive\n", 0)


def test_the_hosts_loopback_is_separate(box: BubblewrapSandbox, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    result = box.execute_python(
        f"""
import socket
for host in ("127.0.0.1", "localhost", "::1", "10.0.0.1", "169.254.169.254", "1.1.1.1"):
    try:
        socket.create_connection((host, {port}), timeout=5)
        print("connected", host)
    except OSError as error:
        print(type(error).__name__)
"""
    )
    assert "connected" not in result.stdout
    assert len(result.stdout.split("\n")) == 7
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_abstract_sockets_of_the_host_are_not_reachable(box: BubblewrapSandbox) -> None:
    name = f"\0vel-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        result = box.execute_python(f"import socket; socket.socket(1).connect({name!r})")
    assert "ConnectionRefusedError" in result.stderr


def test_a_set_uid_file_cannot_be_created(box: BubblewrapSandbox, place: Path) -> None:
    result = box.execute_python(
        """
import os, shutil, stat
shutil.copy("/usr/bin/id", "id")
attempts = {
    "chmod": lambda: os.chmod("id", 0o4755),
    "chmod group": lambda: os.chmod("id", 0o2755),
    "fchmod": lambda: os.fchmod(os.open("id", os.O_RDONLY), 0o6755),
    "fchmodat": lambda: os.chmod("id", 0o4755, dir_fd=os.open(".", os.O_RDONLY)),
    "open": lambda: os.open("new", os.O_CREAT | os.O_WRONLY, 0o4755),
    "tmpfile": lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
    "mknod": lambda: os.mknod("node", 0o4755 | stat.S_IFREG),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "worked")
    except PermissionError:
        pass
os.chmod("id", 0o1777)
os.open("plain", os.O_CREAT, 0o640)
print(oct(os.stat("id").st_mode), oct(os.stat("plain").st_mode & 0o777))
"""
    )
    assert result.stdout == "0o101777 0o640\n", result.stderr
    workspace = workspace_in(place).root / "workspace"
    for path in workspace.iterdir():
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
        assert path.stat().st_uid == (account() or os.geteuid())
        assert path.stat().st_uid != 0


def test_set_uid_programs_of_the_host_give_no_rights(box: BubblewrapSandbox) -> None:
    result = box.execute("su -c id; sudo -n id; /usr/bin/newgrp root < /dev/null; id -u; id -G")
    assert result.stdout.split()[-2:] == ["65534", "65534"]
    assert "uid=0" not in result.stdout


def test_devices_cannot_be_made_or_reached(box: BubblewrapSandbox) -> None:
    result = box.execute("mknod disk b 254 0; mknod mem c 1 1; ls /dev/vda /dev/sda /dev/mem")
    assert result.stdout == ""
    assert result.stderr.count("Operation not permitted") == 2


def test_the_kernel_cannot_be_tuned(box: BubblewrapSandbox) -> None:
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    result = box.execute(
        "for f in kernel/core_pattern kernel/hostname user/max_user_namespaces vm/drop_caches; do "
        "echo 1 > /proc/sys/$f && echo wrote $f; done; echo b > /proc/sysrq-trigger && echo wrote"
    )
    assert "wrote" not in result.stdout
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


def test_capabilities_are_gone_and_stay_gone(box: BubblewrapSandbox) -> None:
    status = box.execute("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status").stdout
    assert dict(line.split(":\t") for line in status.splitlines()) == {
        "CapInh": "0000000000000000",
        "CapPrm": "0000000000000000",
        "CapEff": "0000000000000000",
        "CapBnd": "0000000000000000",
        "CapAmb": "0000000000000000",
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    result = box.execute("unshare -Ur id; unshare -m true; hostname other; mount -t tmpfs x /tmp")
    assert result.exit_code != 0
    assert "uid=0" not in result.stdout


def test_user_namespaces_are_off_even_without_the_filter(
    box: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_all = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
    monkeypatch.setattr(launched, "filter_program", lambda _, **__: allow_all)
    result = box.execute("unshare --user true")
    assert "No space left on device" in result.stderr  # the kernel's message for the limit


def test_limits_apply_and_cannot_be_raised(place: Path) -> None:
    box = sandbox_in(place, processes=20, file_size=1_000_000, open_files=50, memory=10**9)
    limits = box.execute("ulimit -Hu; ulimit -Hf; ulimit -Hn; ulimit -Hv; ulimit -Hc").stdout
    assert limits.split() == ["20", "976", "50", "976562", "0"]
    assert box.execute("ulimit -u 1000").exit_code != 0

    forks = box.execute_python(
        """
import os
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            os.read(os.pipe()[0], 1)
        n += 1
except BlockingIOError:
    print(n)
"""
    )
    assert 10 < int(forks.stdout) < 20
    assert "File size limit exceeded" in box.execute("head -c 2000000 /dev/zero > big").stderr
    assert "MemoryError" in box.execute_python("bytearray(2 * 10**9)").stderr
    assert (
        "Too many open files" in box.execute_python("[open('/dev/null') for _ in range(60)]").stderr
    )


def test_the_process_limit_counts_each_sandbox_separately(place: Path) -> None:
    """The account's other processes are neither counted nor blocked."""
    box = sandbox_in(place, processes=10)
    hogging = box.start("for n in 1 2 3 4 5 6; do sleep 600 & done; echo up; wait")
    try:
        assert box.execute("for n in 1 2 3 4 5 6; do sleep 0 & done; wait; echo fine").success
    finally:
        hogging.kill()
        hogging.wait()


def test_cpu_time_is_limited(place: Path) -> None:
    result = sandbox_in(place, cpu_seconds=1).execute("while :; do :; done")
    assert result.exit_code == 128 + 9
    assert not result.timed_out

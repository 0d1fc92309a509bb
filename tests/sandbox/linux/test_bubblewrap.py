"""The view, the results and the remains of commands."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.errors import SandboxSetupError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.policy import Mount, SandboxPolicy
from tests.sandbox.places import AS_ROOT, account, sandbox_in, workspace_in

pytestmark = pytest.mark.bubblewrap


def test_a_command_returns_its_output_and_exit_code(box: BubblewrapSandbox) -> None:
    result = box.execute("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert not result.success
    assert not result.timed_out
    assert box.execute("true").success


def test_a_signal_that_ends_the_command_is_128_plus_its_number(box: BubblewrapSandbox) -> None:
    assert box.execute("kill -TERM $$").exit_code == 128 + 15
    result = box.execute("kill -KILL $$")
    assert result.exit_code == 137
    assert not result.cancelled


def test_commands_start_in_the_workspace_and_their_files_stay(
    box: BubblewrapSandbox, place: Path
) -> None:
    box.execute("pwd > where; mkdir deep; echo 1 > deep/file; echo 2 > /sandbox/outputs/report")
    root = workspace_in(place).root
    assert (root / "workspace/where").read_text() == "/sandbox/workspace\n"
    assert (root / "workspace/deep/file").read_text() == "1\n"
    assert (root / "outputs/report").read_text() == "2\n"
    assert (root / "outputs/report").stat().st_uid == (account() or os.geteuid())


def test_only_shared_outputs_and_workspace_can_be_written(
    box: BubblewrapSandbox, place: Path
) -> None:
    (workspace_in(place).root / "skills/SKILL.md").write_text("skill")
    (workspace_in(place).root / "skills/SKILL.md").chmod(0o644)
    result = box.execute(
        "for d in /sandbox/* /skills / /etc /usr /usr/local/bin /dev /proc /var /home /run /tmp "
        "/dev/shm ~; do (touch $d/probe) 2>/dev/null && echo $d; done; "
        "cat /skills/SKILL.md; rm -f /sandbox/skills/SKILL.md"
    )
    assert result.stdout.split() == [
        "/sandbox/outputs",
        "/sandbox/shared",
        "/sandbox/workspace",
        "/tmp",
        "/dev/shm",
        "/home/sandbox",
        "skill",
    ]
    assert (workspace_in(place).root / "skills/SKILL.md").exists()


def test_nothing_in_memory_is_left_for_the_next_command(box: BubblewrapSandbox) -> None:
    box.execute("touch /tmp/a /dev/shm/b ~/c")
    assert box.execute("ls -A /tmp /dev/shm ~").stdout.split() == [
        "/dev/shm:",
        "/home/sandbox:",
        "/tmp:",
    ]


def test_the_file_systems_in_memory_have_a_size(place: Path) -> None:
    box = sandbox_in(place, tmp_size=1024 * 1024)
    for directory in ("/tmp", "/dev/shm", "~"):
        result = box.execute(
            f"head -c 3000000 /dev/zero > {directory}/big; stat -c %s {directory}/big"
        )
        assert "No space left" in result.stderr
        assert int(result.stdout) <= 1024 * 1024


def test_the_environment_is_the_sandboxes_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "host-secret")
    policy = replace(workspace_in(place).policy(), environment=(("PROJECT", "two words"),))
    result = BubblewrapSandbox(policy).execute("env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "host-secret" not in result.stdout
    assert "PROJECT=two words\n" in result.stdout
    assert "HOME=/home/sandbox\n" in result.stdout
    assert "LANG=C.UTF-8\n" in result.stdout


def test_the_command_inherits_only_its_three_descriptors(box: BubblewrapSandbox) -> None:
    result = box.execute("exec ls /proc/self/fd", timeout=30)
    assert result.stdout.split() == ["0", "1", "2", "3"]  # 3 is ls reading the directory
    assert "No such device" in box.execute("cat < /dev/tty").stderr


def test_standard_input_is_empty_unless_given(box: BubblewrapSandbox) -> None:
    assert box.execute("cat").stdout == ""
    data = bytes(range(256)) * 4096
    result = box.start("sha256sum", stdin=data).wait()
    assert box.start(["sha256sum"], stdin=data).wait().stdout == result.stdout
    assert box.start("wc -c", stdin=data).wait().stdout.strip() == str(len(data))
    assert box.start("echo x >> /proc/self/fd/0", stdin=b"sealed").wait().exit_code != 0


def test_a_list_runs_without_a_shell(box: BubblewrapSandbox) -> None:
    assert box.start(["echo", "$HOME", "a  b", ""]).wait().stdout == "$HOME a  b \n"


def test_a_program_that_does_not_exist_is_a_set_up_error(box: BubblewrapSandbox) -> None:
    with pytest.raises(SandboxSetupError, match="no-such-program"):
        box.start(["no-such-program"]).wait()
    assert box.execute("no-such-program").exit_code == 127


def test_long_and_odd_commands(box: BubblewrapSandbox) -> None:
    long = "cat > big <<'END'\n" + "x" * 500_000 + "\nEND\nwc -c < big"
    assert box.execute(long).stdout.strip() == "500001"
    assert box.execute("echo 'ünï – 漢字 🎉'").stdout == "ünï – 漢字 🎉\n"
    for bad in ("echo \0", "echo \ud800"):
        with pytest.raises(SandboxSetupError, match="command contains"):
            box.execute(bad)
    with pytest.raises(SandboxSetupError, match="command is empty"):
        box.start([])
    with pytest.raises(SandboxSetupError, match="time limit"):
        box.execute("true", timeout=0)


def test_commands_run_concurrently(box: BubblewrapSandbox) -> None:
    """Each command waits for a file of the other, so both must run at the same time."""
    codes: list[int] = []

    def run(own: int, other: int) -> None:
        script = f"touch {own}; until [ -e {other} ]; do sleep 0.01; done"
        codes.append(box.execute(script).exit_code)

    threads = [threading.Thread(target=run, args=(n, (n + 1) % 4)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0, 0, 0]


def test_nothing_is_left_open_on_the_host(box: BubblewrapSandbox) -> None:
    box.execute("true")
    before = set(os.listdir("/proc/self/fd"))
    for command in ("true", "exit 1", "sleep 60 & true"):
        box.execute(command)
    box.execute("sleep 60", timeout=0.1)
    with pytest.raises(SandboxSetupError):
        box.start(["no-such-program"]).wait()
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_mount_that_does_not_exist_is_named(place: Path) -> None:
    policy = workspace_in(place).policy()
    missing = Mount(place / "missing", "/data")
    box = BubblewrapSandbox(replace(policy, mounts=(*policy.mounts, missing)))
    with pytest.raises(SandboxSetupError, match=r"missing.*No such file"):
        box.execute("true")


@pytest.mark.parametrize("target", ["/", "/proc/x", "/dev", "relative", "/a/../b", "/a//b"])
def test_a_mount_at_an_invalid_path_is_refused(place: Path, target: str) -> None:
    policy = workspace_in(place).policy()
    mounts = (*policy.mounts, Mount(place, target))
    with pytest.raises(SandboxSetupError, match="mount at"):
        BubblewrapSandbox(replace(policy, mounts=mounts)).execute("true")


@pytest.mark.root
def test_root_never_runs_commands_as_root(place: Path) -> None:
    mount = Mount(place, "/work", writable=True)
    refused = (
        SandboxPolicy(mounts=(mount,), working_dir="/work"),
        SandboxPolicy(mounts=(mount,), working_dir="/work", uid=0),
        SandboxPolicy(mounts=(), working_dir="/tmp"),
    )
    for policy in refused:
        with pytest.raises(SandboxSetupError, match=r"as root|a uid"):
            BubblewrapSandbox(policy)
    with pytest.raises(SandboxSetupError, match="group 0"):
        BubblewrapSandbox(replace(refused[0], uid=account(), gid=0))
    os.chown(place, 65534, 65534)
    box = BubblewrapSandbox(refused[0])
    assert box.execute("touch made").success
    assert (place / "made").stat().st_uid == 65534


@pytest.mark.skipif(AS_ROOT, reason="needs an ordinary account")
def test_an_ordinary_user_cannot_use_another_account(place: Path) -> None:
    with pytest.raises(SandboxSetupError, match="only root can change accounts"):
        BubblewrapSandbox(replace(workspace_in(place).policy(), uid=os.geteuid() + 1))

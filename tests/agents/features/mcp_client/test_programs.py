"""The state of a program: kept for its next start in the same thread, and only there."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.mcp_client import programs
from agents.features.mcp_client.models import McpServer
from agents.features.mcp_client.programs import held_state, program_key
from agents.models import Agent, ApprovalRequest, Run, Thread, ToolCall
from agents.services.approvals.decisions import DecisionRequest, decide_approval
from agents.services.erasure.actions import erase_thread, finish_erasures
from agents.services.files.workspace_care import kept_workspaces, remove_workspace
from agents.services.files.workspaces import open_workspace, workspace_location
from agents.settings import DataSettings
from sandbox.cancellation import Cancellation
from sandbox.errors import SandboxSetupError
from sandbox.linux.bubblewrap import BubblewrapSandbox
from sandbox.reaper import kill_marked
from tests.agents.snapshots.driven import command, play
from tests.support.mcp_servers import PLAIN, accept_all, define
from tests.support.runs import drive_to_end, make_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.bubblewrap]

COUNT = """
path = state + "/count"
try: number = int(open(path).read()) + 1
except FileNotFoundError: number = 1
open(path, "w").write(str(number))
out = [state, number, calls]
"""
LOOK = "import os; out = sorted(os.listdir(state))"
SERVERS: dict[str, Any] = {"mcp_servers": ["plain"], "interrupt_on": {"mcp__plain__say": False}}


@pytest.fixture
def ada() -> User:
    ada = make_user(is_superuser=True)
    accept_all(define(ada, "python"), ada)
    return ada


def told(code: str, slug: str = "plain") -> tuple[str, dict[str, Any]]:
    return f"mcp__{slug}__say", {"text": code}


def results(run: Run) -> list[str]:
    calls = ToolCall.objects.filter(run=run).order_by("turn", "position")
    return [str(json.loads(str(call.result))).partition(": ")[2] for call in calls]


def kept(run: Run) -> Path:
    """Return the directory of the state of the thread's programs."""
    return DataSettings.now().workspaces / run.thread_id / "mcp"


@pytest.mark.slow
def test_it_survives_each_wait_for_a_person(ada: User, tmp_path: Path) -> None:
    steps = (told(COUNT), told(COUNT))
    run = play(tmp_path, *steps, ends="waiting", mcp_servers=["plain"])
    for _ in steps:
        request = ApprovalRequest.objects.get(run=run, status="pending")
        decide_approval(request.pk, DecisionRequest("approve", digest=request.digest), by=ada)
        run = drive_to_end(run, until=("waiting", "completed"))
    assert run.status == "completed"
    # Each is the first call of a new process.
    assert results(run) == ["['/state', 1, 1]", "['/state', 2, 1]"]


@pytest.mark.slow
def test_it_stays_with_the_thread_the_server_and_its_program(ada: User, tmp_path: Path) -> None:
    accept_all(define(ada, "python", slug="twin"), ada)
    both: dict[str, Any] = {
        "mcp_servers": ["plain", "twin"],
        "interrupt_on": {"mcp__plain__say": False, "mcp__twin__say": False},
    }
    run = play(tmp_path, told(COUNT), told(LOOK, "twin"), told(COUNT), **both)
    assert results(run) == ["['/state', 1, 1]", "[]", "['/state', 2, 2]"]
    assert results(play(tmp_path, told(COUNT), thread=run.thread)) == ["['/state', 3, 1]"]
    assert results(play(tmp_path, told(LOOK))) == ["[]"]  # another thread

    fields = McpServer.objects.filter(slug="plain")
    for change in (
        {"network": "full"},
        {"arguments": ["-c", PLAIN, "python", "Say something back.", "more"]},
        {"toolbox": "none"},
    ):
        before = fields.values(*change).get()
        key = program_key(fields.get())
        fields.update(**change)
        assert program_key(fields.get()) != key
        if "toolbox" not in change:
            assert results(play(tmp_path, told(LOOK), thread=run.thread)) == ["[]"]
        fields.update(**before)
    assert results(play(tmp_path, told(COUNT), thread=run.thread)) == ["['/state', 4, 1]"]

    fields.delete()  # and a new one with the same name
    accept_all(define(ada, "python"), ada)
    assert results(play(tmp_path, told(LOOK), thread=run.thread)) == ["[]"]


@pytest.mark.slow
def test_commands_and_file_tools_of_the_agent_cannot_see_it(ada: User, tmp_path: Path) -> None:
    run = play(tmp_path, told("open(state + '/mark-7f3a', 'w').write('x'); out = 1"), **SERVERS)
    (place,) = kept(run).iterdir()
    later = play(
        tmp_path,
        command(
            r"find / \( -path /usr -o -path /proc \) -prune -o -name 'mark-7f3a' -print "
            "-o -name 'plain-*' -print 2>/dev/null; ls -A /state /sandbox"
        ),
        ("read_file", {"path": f"{place}/mark-7f3a"}),
        ("write_file", {"path": "/sandbox/mcp/x", "content": "x"}),
        ("write_file", {"path": "/sandbox/workspace/../mcp/x", "content": "x"}),
        told(LOOK),
        thread=run.thread,
    )
    looked, read, *rest = ToolCall.objects.filter(run=later).order_by("turn")
    assert "mark-7f3a" not in str(looked.result)
    assert "cannot access '/state'" in str(looked.result)
    assert [call.status for call in (read, *rest)] == ["failed", "failed", "failed", "succeeded"]
    assert results(later)[-1] == "['mark-7f3a']"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert place.stat().st_uid == (kept(run).parent / "workspace").stat().st_uid


@pytest.mark.slow
def test_the_home_and_the_place_it_starts_in_are_empty_each_time(ada: User, tmp_path: Path) -> None:
    """Files that an agent makes it write must not become its settings or modules."""
    code = (
        "import os; out = [os.getcwd(), os.environ['HOME'], os.listdir('.'), os.listdir(state)]\n"
        "for where in ('.', state): open(where + '/json.py', 'w').write('raise SystemExit(9)')"
    )
    run = play(tmp_path, told(code), **SERVERS)
    assert results(run) == ["['/home/sandbox', '/home/sandbox', [], []]"]
    later = play(tmp_path, told(code), thread=run.thread)
    assert results(later) == ["['/home/sandbox', '/home/sandbox', [], ['json.py']]"]


ESCAPES = """
import os, subprocess
def tried(*argv): return subprocess.run(argv, capture_output=True).returncode
out = [
    tried("mv", "/state", "/stale"), tried("rmdir", "/state"), tried("mkdir", "/sandbox"),
    tried("mount", "--bind", "/etc", "/state"), sorted(os.listdir("/state/..")).count("mcp"),
]
os.symlink("/etc", state + "/etc"); os.symlink("/root", state + "/r")
os.mkfifo(state + "/pipe"); os.chmod(state, 0)
"""


@pytest.mark.slow
def test_links_planted_by_a_program_are_never_followed(ada: User, tmp_path: Path) -> None:
    run = play(tmp_path, told(ESCAPES), **SERVERS)
    (found,) = results(run)
    assert found.endswith(", 0]")
    assert 0 not in json.loads(found)[:4]
    later = play(tmp_path, told(LOOK), thread=run.thread)  # it can enter the directory again
    assert results(later) == ["['etc', 'pipe', 'r']"]

    target = tmp_path / "outside"
    target.mkdir()
    (place,) = kept(run).iterdir()
    for each in place.iterdir():
        each.unlink()
    place.rmdir()
    place.symlink_to(target)  # impossible from inside a sandbox
    refused = play(tmp_path, told(COUNT), thread=run.thread)
    assert "Links are not followed" in str(ToolCall.objects.get(run=refused).result)
    assert list(target.iterdir()) == []


@pytest.mark.slow
def test_it_has_a_quota(ada: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "STATE_BYTES", 2_000_000)
    fill = (
        "import time\nfor number in range(600):\n"
        "    open(f'{state}/{number}', 'wb').write(bytes(100_000)); time.sleep(0.05)"
    )
    run = play(tmp_path, told(fill), told(LOOK), **SERVERS)
    filled, looked = ToolCall.objects.filter(run=run).order_by("turn")
    assert "more than 1.907 MiB of files in /state" in str(filled.result), filled.result
    assert looked.status == "succeeded"  # it may start, to delete files
    monkeypatch.setattr(programs, "STATE_BYTES", 2_000_000_000)
    monkeypatch.setattr(programs, "STATE_FILES", 200)
    later = play(tmp_path, told(fill.replace("100_000", "1")), thread=run.thread)
    assert "more than 200 files in /state" in str(ToolCall.objects.get(run=later).result)


@pytest.mark.slow
def test_messages_about_a_server_name_the_place(ada: User, tmp_path: Path) -> None:
    words = ["-c", PLAIN, "python", "Say.", "${VEL_STATE_DIR}/data.db"]
    secrets = {"MEMORY_FILE_PATH": "${VEL_STATE_DIR}/memory.json"}
    accept_all(define(ada, slug="named", arguments=words, secrets=secrets), ada)
    code = "import os, sys; out = [sys.argv[3], os.environ['MEMORY_FILE_PATH']]"
    free: dict[str, Any] = {"mcp_servers": ["named"], "interrupt_on": {"mcp__named__say": False}}
    run = play(tmp_path, told(code, "named"), **free)
    assert results(run) == ["['/state/data.db', '/state/memory.json']"]


def test_a_subagent_keeps_its_own_and_one_that_only_reads_keeps_nothing(
    ada: User, tmp_path: Path
) -> None:
    run = play(tmp_path, told(COUNT), **SERVERS)
    server = McpServer.objects.get()
    child = Thread.objects.create(owner=ada, agent=Agent.objects.get(), root=run.thread, host="h")
    with held_state(open_workspace(workspace_location(child)), server) as state:
        assert state.mount is not None
        assert state.mount.source == DataSettings.now().workspaces / child.pk / "mcp" / program_key(
            server
        )
    reads = open_workspace(workspace_location(run.thread))
    reads = type(reads)(reads.root, reads.uid, reads.gid, read_only=True)
    with held_state(reads, server) as state:
        assert (state.mount, state.place) == (None, "/home/sandbox")


def test_one_program_at_a_time_has_it(
    ada: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = play(tmp_path, told(COUNT), **SERVERS)
    monkeypatch.setattr(programs, "PATIENCE", 0.05)
    workspace, server = open_workspace(workspace_location(run.thread)), McpServer.objects.get()
    with held_state(workspace, server):
        waited = play(tmp_path, told(COUNT), thread=run.thread)
        assert "has not ended yet" in str(ToolCall.objects.get(run=waited).result)
        with pytest.raises(SandboxSetupError), held_state(workspace, server):
            raise AssertionError("both have it")
    assert results(play(tmp_path, told(COUNT), thread=run.thread)) == ["['/state', 2, 1]"]


@pytest.mark.slow
def test_a_killed_worker_leaves_the_written_state(ada: User, tmp_path: Path) -> None:
    run = play(tmp_path, told(COUNT), **SERVERS)
    workspace, server = open_workspace(workspace_location(run.thread)), McpServer.objects.get()
    reading, writing = os.pipe()

    def say(data: bytes) -> None:
        os.write(writing, data)

    worker = os.fork()
    if worker == 0:
        with held_state(workspace, server) as state:
            assert state.mount is not None
            policy = workspace.policy(extra_mounts=(state.mount,))
            silent, _ = os.pipe()
            code = "import time; open('/state/count', 'w').write('41'); print('x', flush=True)"
            BubblewrapSandbox(policy).start_server(
                ["/usr/bin/python3", "-c", f"{code}; time.sleep(600)"],
                stdin=silent,
                on_stdout=say,
                seconds=60,
                marker="killed-worker",
                cancel=Cancellation(),
            ).wait()
        os._exit(1)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    os.close(reading)
    kill_marked(["killed-worker"])  # as at a new claim of the run
    assert results(play(tmp_path, told(COUNT), thread=run.thread)) == ["['/state', 42, 1]"]


@pytest.mark.slow
def test_a_fork_starts_without_it(ada: User, tmp_path: Path) -> None:
    run = play(tmp_path, told(COUNT), **SERVERS)
    with prepared_fork(run, ForkRequest(files="now"), by=ada) as fork:
        complete_fork(fork)
    assert results(play(tmp_path, told(COUNT), thread=fork.thread)) == ["['/state', 1, 1]"]


@pytest.mark.slow
def test_it_goes_with_its_thread_and_with_its_workspace(ada: User, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("stays")
    link = f"import os; os.symlink({str(outside)!r}, state + '/link'); out = 1"
    run = play(tmp_path, told(link), **SERVERS)
    (place,) = kept(run).iterdir()
    (pruned,) = [each for each in kept_workspaces() if each.key == run.thread_id]
    remove_workspace(pruned)
    assert not place.exists()
    assert results(play(tmp_path, told(LOOK), thread=run.thread)) == ["[]"]
    assert place.exists()

    erase_thread(run.thread_id, by=ada)
    finish_erasures()
    data = DataSettings.now().DATA_DIR
    assert [path for path in data.rglob("*") if run.thread_id in str(path)] == []
    assert outside.read_text() == "stays"

"""`vel runs`, `vel token` and `vel user`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.velproject.command import Terminal, Vel, say
from velproject.cli.commands.runs.display import Display

ECHO = ["--provider", "scripted", "--model", "echo"]
PASSWORD = "a quite long passphrase 7"


@pytest.mark.slow
def test_show_prints_the_output_of_the_run(vel: Vel) -> None:
    flags = vel.script(say("Looking.", ("ls", {"path": "."})), say("Nothing here."))
    assert vel(*flags, "look").returncode == 0
    (run,) = vel.runs()
    shown = vel("runs", "show", run["id"])
    assert shown.returncode == 0
    assert shown.stdout == "Looking.\nNothing here.\n"
    assert "> look" in shown.stderr
    assert "• ls" in shown.stderr


def test_ids_and_statuses_are_whole_on_a_terminal_of_80_columns(vel: Vel) -> None:
    flags = [*ECHO, "--approve", "ls", *vel.script(say("", ("ls", {"path": "."})))]
    task = "count the words of all the files that are here, and of those below, one after another"
    assert vel(*flags, task).returncode == 3
    (run,) = vel.runs()
    terminal = Terminal(vel, "runs", "list", COLUMNS="80")
    assert terminal.finish() == 0
    shown = re.sub("\x1b\\[[0-9;]*m", "", terminal.shown)
    heads, row = (line.rstrip() for line in shown.splitlines() if line.strip())
    assert heads.split() == ["RUN", "STATUS", "AGENT", "AGE", "TASK"]
    assert row.startswith(f"{run['id']}  waiting (approval)  ")
    assert row.endswith("…")
    assert len(row) <= 80
    (request,) = vel.requests()
    terminal = Terminal(vel, "approvals", "list", COLUMNS="80")
    assert terminal.finish() == 0
    shown = re.sub("\x1b\\[[0-9;]*m", "", terminal.shown)
    heads, row = (line.rstrip() for line in shown.splitlines() if line.strip())
    assert heads.split() == ["REQUEST", "AGENT", "STATUS", "AGE", "TOOL", "INPUT"]
    assert row.startswith(f"{request['id']}  ")
    assert "  pending  " in row
    assert len(row) <= 80


@pytest.mark.slow
def test_the_files_of_a_run_are_listed_and_copied(vel: Vel, tmp_path: Path) -> None:
    written = [("/a.txt", "A"), ("/b/c.txt", "CC"), ("/.git/config", "x"), ("/ctrl\x1b.txt", "")]
    calls = [("write_file", {"path": path, "content": text}) for path, text in written]
    done = vel(*vel.script(say("", *calls), say("Done.")), "--no-sandbox", "write")
    assert done.returncode == 0, done.stderr
    (run,) = vel.runs()
    assert f"runs files {run['id']} --to DIR" in done.stderr
    listed = vel("runs", "files", run["id"])
    assert listed.returncode == 0
    assert "/b/c.txt" in listed.stdout
    copied = vel("runs", "files", run["id"], "--to", str(tmp_path / "new"))
    assert copied.returncode == 1
    assert "protected" in copied.stdout
    found = {path.relative_to(tmp_path / "new") for path in (tmp_path / "new").rglob("*.*")}
    assert {Path("a.txt"), Path("b/c.txt")} <= found
    assert not any(".git" in str(path) or "\x1b" in str(path) for path in found)
    assert (tmp_path / "new" / "b" / "c.txt").read_text() == "CC"
    again = vel("runs", "files", run["id"], "--to", str(tmp_path / "new"))
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    assert "runs files RUN" in vel("workspaces", "show", run["thread_id"]).stderr


@pytest.mark.slow
def test_an_id_may_be_shortened_while_it_is_clear(vel: Vel) -> None:
    assert vel(*ECHO, "one").returncode == 0
    assert vel(*ECHO, "two").returncode == 0
    newest = vel.runs()[0]["id"]
    assert vel("runs", "show", newest[:25]).returncode == 0
    unclear = vel("runs", "show", newest[:3])
    assert unclear.returncode == 2
    assert "Several runs have an id that starts with" in unclear.stderr


@pytest.mark.slow
def test_the_runs_of_others_are_not_shown_or_touched(vel: Vel) -> None:
    assert vel(*ECHO, "mine").returncode == 0
    (run,) = vel.runs()
    vel.execute("UPDATE auth_user SET username = 'somebody'")
    assert vel.rows("runs", "list") == []
    assert vel("runs", "show", run["id"]).returncode == 2
    assert vel("runs", "cancel", run["id"]).returncode == 2
    assert vel("runs", "resume", run["id"]).returncode == 2
    assert [row["owner"] for row in vel.rows("runs", "list", "--all")] == ["somebody"]


@pytest.mark.slow
def test_a_waiting_run_is_cancelled_with_its_request(vel: Vel) -> None:
    flags = vel.script(say("", ("ls", {"path": "."})))
    assert vel(*flags, "--approve", "ls", "look").returncode == 3
    (run,) = vel.runs()
    assert vel("runs", "cancel", run["id"], "--reason", "changed my mind").returncode == 0
    assert vel.runs()[0]["status"] == "cancelled"
    assert vel.rows("approvals", "list") == []
    assert "already" in vel("runs", "cancel", run["id"]).stdout


@pytest.mark.slow
def test_the_ends_of_runs_are_counted_where_metrics_are_on(vel: Vel) -> None:
    """Commands have no heartbeat, so their counts must be added to the sums."""
    vel.environment["VEL_METRICS_TOKEN"] = "0123456789abcdef" * 2
    assert vel(*ECHO, "mine").returncode == 0
    flags = vel.script(say("", ("ls", {"path": "."})))
    assert vel(*flags, "--approve", "ls", "look").returncode == 3
    assert vel("runs", "cancel", vel.runs()[0]["id"]).returncode == 0
    (sums,) = vel.stored("SELECT * FROM agents_serverprocess")
    assert json.loads(sums["counters"])["vel_runs_ended_total"] == {
        '["completed"]': 1.0, '["cancelled"]': 1.0
    }  # fmt: skip


@pytest.mark.slow
def test_a_failed_run_resumes_and_a_completed_one_does_not(vel: Vel) -> None:
    assert vel("--provider", "scripted", "--model", "none", "go").returncode == 1
    (run,) = vel.runs()
    assert vel("runs", "resume", run["id"]).returncode == 1  # it fails in the same way
    assert vel(*ECHO, "fine").returncode == 0
    done = vel("runs", "resume", vel.runs()[0]["id"])
    assert done.returncode == 2
    assert "completed" in done.stderr


@pytest.mark.slow
def test_detach_hands_a_failed_run_to_the_workers(vel: Vel) -> None:
    assert vel("--provider", "scripted", "--model", "none", "go").returncode == 1
    (run,) = vel.runs()
    assert vel("runs", "resume", run["id"], "--detach").returncode == 0
    assert vel.runs()[0]["status"] == "queued"
    assert vel.count("django_q_ormq") == 1


@pytest.mark.slow
def test_a_token_is_printed_alone_and_stored_as_a_hash(vel: Vel) -> None:
    assert vel("user", "create", "ada", "--password-stdin", stdin=PASSWORD + "\n").returncode == 0
    made = vel("token", "create", "ada", "--scope", "approve", "--name", "ci")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    assert secret.startswith("vel_")
    assert secret.encode() not in (vel.data / "vel.sqlite3").read_bytes()
    (token,) = vel.rows("token", "list", "ada")
    assert token["scopes"] == ["approve"]
    assert token["state"] == "valid"
    assert vel("token", "revoke", token["prefix"]).returncode == 0
    assert vel.rows("token", "list")[0]["state"] == "revoked"
    assert vel("token", "revoke", token["prefix"]).returncode == 2
    assert vel("token", "revoke", "v").returncode == 2


@pytest.mark.slow
def test_an_administrator_is_made_with_a_password_that_django_accepts(vel: Vel) -> None:
    weak = vel("user", "create", "ada", "--admin", "--password-stdin", stdin="password\n")
    assert weak.returncode == 2
    assert "too common" in weak.stderr
    good = vel("user", "create", "ada", "--admin", "--password-stdin", stdin=PASSWORD + "\n")
    assert good.returncode == 0, good.stderr
    assert "administrator" in good.stdout
    again = vel("user", "create", "ada", "--password-stdin", stdin="another long one 8\n")
    assert again.returncode == 2
    assert "already has a password" in again.stderr
    assert vel("user", "create", "bob", "--admin").returncode == 2  # no terminal is attached


@pytest.mark.slow
def test_the_list_shows_threads_where_one_is_to_be_named(vel: Vel) -> None:
    assert vel(*ECHO, "one").returncode == 0
    (run,) = vel.runs()
    assert run["thread_id"] not in vel("runs", "list").stdout

    refused = vel("prune", "--thread", "nosuch")
    assert refused.returncode == 2
    assert "There is no thread 'nosuch'. List the IDs: vel runs list --all" in refused.stderr

    (head, row) = vel("runs", "list", "--all", "--threads").stdout.splitlines()
    assert head.split()[:3] == ["RUN", "THREAD", "STATUS"]
    assert row.split()[:2] == [run["id"], run["thread_id"]]
    assert vel("prune", "--thread", row.split()[1], "--apply").returncode == 0
    assert vel.runs() == []


def test_the_reason_for_resuming_a_run_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display(live=False)
    display.event({"type": "run.resumed", "data": {"reason": "approvals decided"}})
    display.event({"type": "run.resumed", "data": {"reason": "a database failed", "attempt": 3}})
    display.close()
    assert capsys.readouterr().err == "↻ the run continues: a database failed\n"

"""`vel threads export` and `/export`: only own conversations, and only new files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from agents.doors.cli.errors import CliError
from agents.doors.cli.local_user import local_user
from agents.doors.cli.slash_commands import Session
from agents.features.conversation_export import cli
from agents.models import Run
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.velproject.in_process import call

pytestmark = pytest.mark.django_db
Output = pytest.CaptureFixture[str]


@pytest.fixture
def run() -> Run:
    make_agent()
    return make_run(local_user(), message="When does it rain?\x1b[2J\u202e")


class FakeSession:
    """The part of a session that the command uses."""

    agent = "writer"

    def __init__(self, run: Run | None) -> None:
        self.owner = local_user()
        self.thread = run.thread_id if run else None
        self.said: list[str] = []

    def say(self, text: str, style: str = "") -> None:
        self.said.append(text)

    def use_thread(self, thread: str) -> None:
        self.thread = thread


def export_in(session: FakeSession, rest: str) -> None:
    cli.export_session(cast(Session, session), rest)


def test_it_prints_a_text_that_is_safe_for_a_terminal(run: Run, capsys: Output) -> None:
    call("threads", "export", run.thread_id[:-2])
    shown = capsys.readouterr().out
    assert (
        "> When does it rain?⟨U+001B⟩\\[2J" in shown or "> When does it rain?⟨U+001B⟩[2J" in shown
    )
    assert shown.endswith("*End of the conversation.*\n")
    call("threads", "export", run.thread_id, "--format", "json")
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert json.loads(text)["thread"]["title"].endswith("\x1b[2J\u202e")


def test_the_name_of_the_file_chooses_the_format(run: Run, tmp_path: Path, capsys: Output) -> None:
    call("threads", "export", run.thread_id, "-o", str(tmp_path / "a.JSON"))
    assert json.loads((tmp_path / "a.JSON").read_text())["version"] == 1
    call("threads", "export", run.thread_id, "-o", str(tmp_path / "a.md"))
    assert (tmp_path / "a.md").read_text().startswith("# ")
    call("threads", "export", run.thread_id, "-o", str(tmp_path / "b.md"), "--format", "json")
    assert json.loads((tmp_path / "b.md").read_text())
    assert capsys.readouterr().out == ""


def test_a_file_or_link_that_exists_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("mine")
    (tmp_path / "link.md").symlink_to(tmp_path / "elsewhere.md")
    for name in ("a.md", "link.md"):
        with pytest.raises(CliError, match="exists"):
            call("threads", "export", run.thread_id, "-o", str(tmp_path / name))
    assert (tmp_path / "a.md").read_text() == "mine"
    assert not (tmp_path / "elsewhere.md").exists()
    with pytest.raises(CliError, match="cannot be written"):
        call("threads", "export", run.thread_id, "-o", str(tmp_path / "no" / "a.md"))


def test_an_incomplete_file_is_removed(tmp_path: Path) -> None:
    def broken() -> Any:
        yield "# Half"
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        cli.write(tmp_path / "a.md", broken())
    assert os.listdir(tmp_path) == []


def test_conversations_of_others_are_unknown(run: Run, tmp_path: Path) -> None:
    other = make_run(make_user("ada"), message="Private")
    with pytest.raises(CliError, match="no thread"):
        call("threads", "export", other.thread_id)
    session = FakeSession(other)
    with pytest.raises(Exception, match="You have no thread"):
        export_in(session, str(tmp_path / "a.md"))
    assert os.listdir(tmp_path) == []


def test_the_slash_command_writes_the_session(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = FakeSession(run)
    export_in(session, "")
    (name,) = os.listdir(tmp_path)
    assert name == f"when-does-it-rain2j-{run.thread.created_at:%Y-%m-%d}.md"
    assert session.said == [f"Wrote {name}."]
    export_in(session, "a b.json")
    assert json.loads((tmp_path / "a b.json").read_text())
    with pytest.raises(CliError, match="exists"):
        export_in(session, "")
    with pytest.raises(CliError, match="no task yet"):
        export_in(FakeSession(None), "")

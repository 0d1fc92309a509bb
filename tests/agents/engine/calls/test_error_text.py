"""Error texts for models contain no traceback and no directory of the host."""

from __future__ import annotations

import pwd
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import agents
from agents.custom.tool_spec import tool
from agents.engine.calls.error_text import error_content, error_text
from agents.models import ToolCall
from agents.services.files.workspaces import WorkspaceLocation
from agents.settings import DataSettings
from tests.support.runs import drive_to_end, make_agent, make_user, script_file, start_run

PROJECT = Path(agents.__file__).parents[1]
HOST = {
    "Python's stack": "Traceback (most recent call last)",
    "files of Python": 'File "/',
    "the project": str(PROJECT),
    "the packages": sysconfig.get_path("purelib"),
    "the home directory": str(Path.home()),
}
TRACEBACK = f"""\
It failed: Traceback (most recent call last):
  File "{PROJECT}/agents/x.py", line 1, in x
    import y
ModuleNotFoundError: No module named 'y'
The end."""


@tool(effect="read")
def break_down() -> str:
    """Raise an error that reveals much of the host."""
    raise RuntimeError(f"{TRACEBACK} See {Path.home()}/notes and {DataSettings.now().DATA_DIR}.")


def location(own_directory: Path | None = None) -> WorkspaceLocation:
    return WorkspaceLocation("one", None, own_directory)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TRACEBACK, "It failed:\nModuleNotFoundError: No module named 'y'\nThe end."),
        ("{data}/vel.sqlite3 is locked", "<data directory>/vel.sqlite3 is locked"),
        ("It is in {data}.", "It is in <data directory>."),
        ("{data}/workspaces/one/outputs/a", "/sandbox/outputs/a"),
        ("{data}/workspaces/other/a", "<data directory>/workspaces/other/a"),
        ("{own}/src/a.py", "/sandbox/workspace/src/a.py"),
        ("{own}-other/a.py", "{own}-other/a.py"),
        ("/sandbox/workspace/a and /usr/bin/x", "/sandbox/workspace/a and /usr/bin/x"),
    ],
)
def test_errors_name_no_directory_of_the_host(text: str, expected: str) -> None:
    own = Path("/srv/shop")
    places = {"data": str(DataSettings.now().DATA_DIR), "own": str(own)}
    assert error_text(text.format(**places), location(own)) == expected.format(**places)


@pytest.mark.parametrize("shape", [lambda text: text, lambda text: {"error": text}])
def test_a_refused_path_is_shown_as_the_model_wrote_it(shape: Any) -> None:
    own = Path("/srv/shop")
    advice = ": outside. Use '/sandbox/workspace/a.md', not {}/a.md."
    text = shape('"/srv/shop/a.md"' + advice.format(own))
    shown = shape('"/srv/shop/a.md"' + advice.format("/sandbox/workspace"))
    assert error_content(text, location(own), given="/srv/shop/a.md") == shown
    hidden = shape('"/sandbox/workspace/a.md"' + advice.format("/sandbox/workspace"))
    for other in (None, "/srv/shop", "/srv/shop/b.md"):
        assert error_content(text, location(own), given=other) == hidden


def test_errors_in_json_and_in_blocks() -> None:
    data = str(DataSettings.now().DATA_DIR)
    told = {"error": f"{data}/x", "more": [{"text": data, "count": 1, "last": None}]}
    clean = {
        "error": "<data directory>/x",
        "more": [{"text": "<data directory>", "count": 1, "last": None}],
    }
    assert error_content(told, location()) == clean
    picture = {"type": "image", "source": {"data": data}}
    blocks = [{"type": "text", "text": data}, picture]
    cleaned = error_content(blocks, location(), blocks=True)
    assert cleaned == [{"type": "text", "text": "<data directory>"}, picture]


def test_an_account_without_a_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert error_text("~ and /x: no such file", location()) == "~ and /x: no such file"


@pytest.mark.django_db(transaction=True)
def test_a_model_reads_no_traceback_of_a_tool(settings: Any, tmp_path: Path) -> None:
    settings.VEL = {**settings.VEL, "TOOLS": [f"{__name__}.break_down"]}
    user = make_user()
    turn = {"tool_calls": [{"name": "break_down", "input": {}}]}
    make_agent(user, model=script_file(tmp_path, [turn, {"text": "Done."}]), tools=["break_down"])
    run = drive_to_end(start_run(user))
    call = ToolCall.objects.get(run=run)
    assert call.is_error
    assert [what for what, text in HOST.items() if text in call.result] == []
    assert str(DataSettings.now().DATA_DIR) not in call.result
    assert "ModuleNotFoundError: No module named 'y'" in call.result

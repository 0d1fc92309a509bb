"""Pictures of the clipboard, with programs that have the arguments of `wl-paste` and `xclip`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agents.doors.cli.errors import CliError
from tests.velproject.cli.commands.runs.at_prompt import READY, leave, messages, prompted
from tests.velproject.command import ROOT, Vel
from velproject.cli.commands.runs.session import clipboard

PICTURE = ROOT / "docs" / "pictures" / "run.png"
WL_PASTE = """#!/bin/sh
case "$*" in
--list-types) printf 'text/html\\n%s\\n' "$TYPE" ;;
"--no-newline --type $TYPE") cat "$CONTENT" ;;
*) echo "wrong arguments: $*" >&2; exit 1 ;;
esac
"""
XCLIP = """#!/bin/sh
case "$*" in
"-selection clipboard -out -target TARGETS") printf 'TIMESTAMP\\n%s\\n' "$TYPE" ;;
"-selection clipboard -out -target $TYPE") cat "$CONTENT" ;;
*) echo "wrong arguments: $*" >&2; exit 1 ;;
esac
"""


def desktop(place: Path, name: str, script: str, **more: str) -> dict[str, str]:
    """Return the environment of a desktop with the program `name`."""
    program = place / "programs" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(script)
    program.chmod(0o755)
    variable = "WAYLAND_DISPLAY" if name == "wl-paste" else "DISPLAY"
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        variable: ":0",
        "TYPE": "image/png",
        "CONTENT": str(PICTURE),
        **more,
    }


@pytest.mark.parametrize(
    ("name", "script", "keys"),
    [("wl-paste", WL_PASTE, "\x16"), ("xclip", XCLIP, "/paste\r")],
    ids=["Ctrl-V", "/paste"],
)
def test_the_picture_of_the_clipboard_becomes_a_file_of_the_task(
    vel: Vel, name: str, script: str, keys: str
) -> None:
    terminal = prompted(vel, **desktop(vel.data, name, script))
    terminal.type(keys)
    terminal.expect("[picture 1: clipboard-")
    terminal.type("what is it?\r")
    terminal.expect("tokens in")
    terminal.expect(READY)
    leave(terminal)
    assert "[picture 1: clipboard-" in str(messages(vel))
    (picture,) = vel.data.glob("workspaces/**/clipboard-*.png")
    assert picture.read_bytes() == PICTURE.read_bytes()
    assert vel.count("agents_upload") == 1


def test_the_prompt_says_why_there_is_no_picture(vel: Vel) -> None:
    terminal = prompted(vel)
    terminal.type("\x16")
    terminal.expect("has no clipboard")
    terminal.type("\x15/paste\r")
    terminal.expect("This terminal has no clipboard")
    terminal.expect(READY)
    leave(terminal)
    assert vel.runs() == []


@pytest.mark.parametrize(
    ("script", "more", "problem"),
    [
        (XCLIP, {"TYPE": "text/plain"}, "contains no PNG or JPEG picture"),
        (XCLIP, {"CONTENT": "/etc/passwd"}, "is not what its name says"),
        (XCLIP, {"TYPE": "image/jpeg"}, "is not what its name says"),
        ("#!/bin/sh\nprintf '\\033]0;t\\007' >&2; exit 1", {}, r"no picture \(xclip: \\x1b\]0;t"),
        ("#!/bin/sh\necho image/png; yes", {}, "more than"),
        ("#!/bin/sh\nexec sleep 600", {}, "did not answer"),
    ],
)
def test_a_clipboard_without_a_usable_picture_is_an_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    more: dict[str, str],
    problem: str,
) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for name, value in desktop(tmp_path, "xclip", script, **more).items():
        monkeypatch.setenv(name, value)
    if "sleep" in script:
        monkeypatch.setattr(clipboard, "SECONDS", 0.1)
    with pytest.raises(CliError, match=problem):
        clipboard.picture()


def test_a_desktop_without_the_program_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CliError, match="need the package wl-clipboard"):
        clipboard.picture()
    assert shutil.which("wl-paste") is None

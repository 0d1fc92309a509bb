"""The notice at the end of a long task."""

from __future__ import annotations

import pytest

from tests.velproject.command import Terminal, Vel

TASK = ("--provider", "scripted", "--model", "echo", "\x1b]0;evil\x07\x9c; title")


def shown(vel: Vel, **environment: str) -> str:
    terminal = Terminal(vel, *TASK, **environment)  # type: ignore[arg-type]
    assert terminal.finish() == 0
    assert "\x1b]0;evil" not in terminal.shown
    return terminal.shown


def test_a_bell_rings_only_after_a_long_task(vel: Vel) -> None:
    assert "\x07" in shown(vel, VEL_NOTICE_SECONDS="0")
    assert "\x07" not in shown(vel)
    assert "\x07" not in shown(vel, VEL_NOTICE_SECONDS="0", VEL_NOTICE="off")


@pytest.mark.parametrize(("notice", "start"), [("osc9", "9;"), ("osc777", "777;notify;Vel;")])
def test_a_title_cannot_end_the_notification_or_add_a_field(
    vel: Vel, notice: str, start: str
) -> None:
    text = shown(vel, VEL_NOTICE_SECONDS="0", VEL_NOTICE=notice)
    _, _, sent = text.partition(f"\x1b]{start}")
    assert sent.partition("\x07")[0] == "\\x1b]0,evil\\x07\\x9c, title: completed"


def test_without_a_terminal_there_is_no_notice(vel: Vel) -> None:
    done = vel(*TASK, VEL_NOTICE_SECONDS="0")
    assert "\x07" not in done.stdout + done.stderr


def test_an_unknown_kind_of_notice_is_refused(vel: Vel) -> None:
    done = vel(*TASK, VEL_NOTICE="loud")
    assert done.returncode != 0
    assert "bell, osc9, osc777" in done.stderr

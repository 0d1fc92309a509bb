"""`vel toolbox`, and the flag of a task that names one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.toolboxes import put_toolbox
from tests.support.wheels import NO_INDEX, make_wheel
from tests.velproject.command import Vel, say


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_one_is_built_used_kept_listed_and_removed(vel: Vel, tmp_path: Path) -> None:
    wheel = str(make_wheel(tmp_path))
    built = vel("toolbox", "create", "data", wheel, **NO_INDEX)
    assert built.returncode == 0, built.stderr
    assert built.stdout.startswith("Built data")
    assert "tiny 1.0" in built.stdout

    flags = vel.script(
        say("", ("execute_python", {"code": "import tiny; print(tiny.ANSWER * 10)"})), say("Done.")
    )
    done = vel(*flags, "--toolbox", "data", "compute")
    assert done.returncode == 0, done.stderr
    assert "420" in done.stderr

    kept = vel("toolbox", "create", "data", wheel, "--if-missing", **NO_INDEX)
    assert kept.stdout.startswith("Kept data")

    [listed] = vel.rows("toolbox", "list")
    assert (listed["name"], listed["packages"], listed["problems"]) == ("data", ["tiny"], [])
    assert vel("toolbox", "remove", "data").stdout == "data is removed.\n"
    assert vel("toolbox", "list").stdout == ""


@pytest.mark.slow
def test_a_failure_of_pip_is_shown_in_short(vel: Vel) -> None:
    failed = vel("toolbox", "create", "data", "no-such-package-of-ours", **NO_INDEX)
    assert failed.returncode == 1
    assert "No matching distribution found for no-such-package-of-ours" in failed.stderr
    assert len(failed.stderr.splitlines()) < 20
    assert failed.stderr.splitlines()[-1].startswith("vel: pip could not install this")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("create", "data"), 1, "Name at least one package"),
        (("create", "../data", "pandas"), 1, "is not a valid toolbox name"),
        (("create", "data", "--", "--index-url=http://evil"), 1, "is an option"),
        (("create", "data", "git+https://example.org/x"), 1, "--allow-source"),
        (("create", "data", "x", "--index-url", "ftp://x"), 1, "use an https:// address"),
        (("create", "data", "x", "--replace", "--if-missing"), 2, "cannot be combined"),
        (("create", "data", "-r", "/no/such/file"), 2, "does not exist"),
        (("show", "data"), 1, "There is no toolbox 'data'"),
        (("remove", "data"), 1, "There is no toolbox 'data'"),
    ],
)
def test_a_refusal_is_one_line(
    vel: Vel, arguments: tuple[str, ...], code: int, message: str
) -> None:
    refused = vel("toolbox", *arguments)
    assert refused.returncode == code
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not list(vel.data.glob("toolboxes/*"))


def test_a_task_cannot_name_one_that_is_missing(vel: Vel) -> None:
    refused = vel("--toolbox", "gone", "hello")
    assert refused.returncode == 1
    assert "vel toolbox create gone" in refused.stderr
    assert not vel.rows("runs", "list")
    both = vel("--toolbox", "gone", "--no-sandbox", "hello")
    assert both.returncode == 2
    named = vel("--toolbox", "gone", "--agent", "demo", "hello")
    assert "--toolbox cannot be combined with --agent" in named.stderr


@pytest.mark.slow
def test_the_doctor_reports_the_state_of_each_toolbox(vel: Vel) -> None:
    base = vel.data / "toolboxes"
    put_toolbox(base, "good")
    put_toolbox(base, "old", python="3.9.1", abi="cpython-39-x86_64-linux-gnu")
    (put_toolbox(base, "changed") / "mark").write_text("x")
    report = vel("doctor", "--json")
    found = {row["subject"]: row for row in map(json.loads, report.stdout.splitlines())}
    assert report.returncode == 1
    assert found["toolbox good"]["level"] == "ok"
    assert found["toolbox old"]["level"] == "broken"
    assert "vel toolbox create old … --replace" in found["toolbox old"]["detail"]
    assert "were changed" in found["toolbox changed"]["detail"]
    listed = {row["name"]: row["problems"] for row in vel.rows("toolbox", "list")}
    assert listed["good"] == []
    assert "--replace" in listed["old"][0]
    assert vel("toolbox", "show", "changed").returncode == 1

"""Run groups of tests at the same time, and print one summary at the end.

`python -m tests.run sqlite postgres` is `make test`. The output of the first group appears while it
runs, the output of each other group when all groups before it have ended. Tests often wait for
other processes: together, the groups use the processor better than one after the other. The exit
code is 1 if any group failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]


def _files(*markers: str) -> list[str]:
    """Return the test files that contain all these markers, so that pytest imports no others."""
    texts = {file: file.read_text() for file in sorted((ROOT / "tests").rglob("test_*.py"))}
    return [
        str(file.relative_to(ROOT))
        for file, text in texts.items()
        if all(f"mark.{marker}" in text for marker in markers)
    ]


UNIT_TESTS = (
    *("tests/agents/agent_files", "tests/agents/custom", "tests/docs_tools"),
    *("tests/agents/review", "tests/agents/selectors", "tests/agents/structured_output"),
    *("tests/agents/test_conditions.py", "tests/skills_app/library/search", "tests/structure"),
)
"""Tests without the sandbox, servers, browsers or other processes."""
POSTGRES = (sys.executable, "-m", "tests.support.postgres")

GROUPS = {
    "sqlite": (*POSTGRES, "--aside", "PYTEST", "-m", "not storm and not slow"),
    # Tests that depend on the database run on PostgreSQL as well.
    "postgres": (
        *POSTGRES,
        "PYTEST",
        "-m",
        "both_databases and not storm and not slow",
        *_files("both_databases"),
    ),
    "slow": (*POSTGRES, "--aside", "PYTEST", "-m", "slow and not storm", *_files("slow")),
    "slow-postgres": (
        *POSTGRES,
        "PYTEST",
        "-m",
        "slow and both_databases and not storm",
        *_files("slow", "both_databases"),
    ),
    "fast": (
        "PYTEST",
        "-m",
        "not storm and not slow and not bubblewrap and not postgresql",
        *UNIT_TESTS,
    ),
    # For another version of Python: processes and threads end in different ways.
    "python": (
        *("PYTEST", "-m", "not storm", *UNIT_TESTS),
        *("tests/chaos/test_cluster_death.py", "tests/chaos/test_worker_death.py"),
        *("tests/agents/engine/test_recovery.py", "tests/agents/sdk/test_scripts.py"),
    ),
    "root": (*POSTGRES, "--aside", "PYTEST", "-m", "(root or control_groups) and not storm"),
    "root-postgres": (
        *POSTGRES,
        "PYTEST",
        "-m",
        "root and both_databases and not storm",
        *_files("root", "both_databases"),
    ),
    "storm": (*POSTGRES, "--aside", "PYTEST", "--timeout", "3600", "-m", "storm"),
    "storm-postgres": (
        *POSTGRES,
        "PYTEST",
        *("--timeout", "3600", "-m", "storm", "tests/chaos"),
        *(file for file in _files("storm") if "locking" in file),
    ),
}
"""The command of each group. PYTEST is replaced by pytest and its general options."""

PROBLEMS = ("failed", "error")
MOST_WORKERS = 6


@dataclass(frozen=True, slots=True)
class Outcome:
    group: str
    code: int
    seconds: float
    counts: dict[str, int]
    failures: list[str]

    def line(self) -> str:
        """Return this outcome as a line of the summary."""
        minutes, seconds = divmod(round(self.seconds), 60)
        numbers = ", ".join(f"{number} {name}" for name, number in _numbers(self.counts).items())
        end = "" if self.counts else f" (no result; exit code {self.code})"
        return f"{self.group:13} {numbers} in {minutes}:{seconds:02}{end}"


def _numbers(counts: dict[str, int]) -> dict[str, int]:
    return {
        "passed": counts.get("passed", 0),
        "failed": sum(counts.get(name, 0) for name in PROBLEMS),
        "skipped": counts.get("skipped", 0),
    }


def _terminated(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


class Run:
    """A group that runs now. Its output goes to a file, or to the terminal without one."""

    def __init__(self, group: str, workers: int, scratch: Path, output: Path | None) -> None:
        self.group = group
        self.output = output
        self._report = scratch / f"{group}.json"
        command: list[str] = []
        for word in GROUPS[group]:
            command += _pytest(workers) if word == "PYTEST" else [word]
        self._begin = time.monotonic()
        environment = {**os.environ, "VEL_TEST_COUNTS": str(self._report)}
        with ExitStack() as files:
            stdout = None if output is None else files.enter_context(output.open("wb"))
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=stdout,
                stderr=None if stdout is None else subprocess.STDOUT,
            )
        self._seconds = 0.0
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        self._process.wait()
        self._seconds = time.monotonic() - self._begin

    def wait(self) -> Outcome:
        """Wait for the end, print the output, and read the report of tests.support.report."""
        code = self._process.wait()
        self._watcher.join()
        if self.output is not None:
            print(f"\n{self.group}:", flush=True)
            sys.stdout.buffer.write(self.output.read_bytes())
            sys.stdout.flush()
        found: dict[str, Any] = {"counts": {}, "failures": []}
        if self._report.exists():
            found = json.loads(self._report.read_text())
        return Outcome(self.group, code, self._seconds, **found)

    def stop(self) -> None:
        """End the group. Its PostgreSQL server ends with it."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def _pytest(workers: int) -> list[str]:
    return [
        *(sys.executable, "-m", "pytest", "-n", str(workers)),
        *("--dist", "loadfile", "--no-loadscope-reorder"),
    ]


def run_all(groups: list[str], workers: int) -> list[Outcome]:
    """Run the groups: the first with `workers` processes, each other one with half as many."""
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="vel-tests-") as directory:
        scratch = Path(directory)
        try:
            for group in groups:
                others = max(1, workers // 2) if runs else workers
                output = scratch / f"{group}.log" if runs else None
                runs.append(Run(group, others, scratch, output))
            return [each.wait() for each in runs]
        finally:
            for each in runs:
                each.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__)
    parser.add_argument("groups", nargs="+", choices=GROUPS, metavar="group")
    parser.add_argument(
        "--workers",
        type=int,
        # Tests wait little. More processes than processors need more processor time for the same.
        default=min((os.cpu_count() or 2) + 1, MOST_WORKERS),
        help="the number of processes of the first group; by default one more than processors",
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _terminated)
    outcomes = run_all(options.groups, options.workers)
    print()
    for outcome in outcomes:
        for failure in outcome.failures:
            print(f"Failed test ({outcome.group}): {failure}")
    for outcome in outcomes:
        print(outcome.line())
    total = [_numbers(outcome.counts) for outcome in outcomes]
    sums = {name: sum(numbers[name] for numbers in total) for name in total[0]}
    print("Total:", ", ".join(f"{number} {name}" for name, number in sums.items()), flush=True)
    return int(any(outcome.code for outcome in outcomes))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)

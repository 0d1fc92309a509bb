"""A plugin of pytest for tests.run: names failures, counts outcomes, checks skipped tests in CI."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

ALLOWED = Path(__file__).parents[1] / "allowed_skips.txt"
MOST_CHARACTERS = 1_500
"""The limit for the message of a failed test in the summary."""


def allowed_skips() -> set[tuple[str, str]]:
    """Return the tests of allowed_skips.txt without their parameters, each with its reason."""
    entries = set()
    for line in ALLOWED.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        node, separator, reason = line.partition(" # ")
        if not separator or not reason.strip():
            raise pytest.UsageError(f"{ALLOWED.name}: {line!r} has no reason")
        entries.add((node.strip(), reason.strip()))
    return entries


def _unexpected(reporter: TerminalReporter) -> list[str]:
    """Return the skipped tests that the list does not contain with the same reason."""
    if os.environ.get("CI") != "true":
        return []
    allowed = allowed_skips()
    found = set()
    for report in reporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        test = report.nodeid.split("[")[0]
        if not any(test == node and reason.startswith(listed) for node, listed in allowed):
            found.add(f"{report.nodeid} # {reason}")
    return sorted(found)


class _Failures:
    """Print the name of each failure immediately: a long run that is stopped prints no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            reporter.write_line(f"\n{report.when} failed: {report.nodeid}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and _unexpected(reporter) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    counts = {outcome: len(reports) for outcome, reports in terminalreporter.stats.items()}
    failures = [
        _line(report)
        for outcome in ("failed", "error")
        for report in terminalreporter.getreports(outcome)
    ]
    if unexpected := _unexpected(terminalreporter):
        terminalreporter.section(f"skipped, but not in {ALLOWED.name}", red=True)
        for node in unexpected:
            terminalreporter.write_line(node)
        counts["failed"] = counts.get("failed", 0) + len(unexpected)
        counts["skipped"] -= len(unexpected)
        failures += [f"{node} (skipped, but not in {ALLOWED.name})" for node in unexpected]
    if path := os.environ.get("VEL_TEST_COUNTS"):
        Path(path).write_text(json.dumps({"counts": counts, "failures": failures}))


def _line(report: pytest.TestReport) -> str:
    """Return the name of a failed test and the end of its message, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    message = " ".join((crash.message if crash else str(report.longrepr)).split())
    return f"{report.nodeid}: {message[:MOST_CHARACTERS]}"

"""A misspelt environment variable is reported, with the nearest known one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

from agents.kernel.settings import About, FeatureSettings, installed, refuse_duplicates, settings_of
from tests.structure.test_structure import PACKAGES
from velproject.checks.environment import deprecated_settings
from velproject.cli.commands.machines.safe import refuse_unsafe
from velproject.server_settings import ServerSettings

ROOT = Path(__file__).parents[2]
NO_SETTINGS = {
    *("VEL_SANDBOX", "VEL_STATE_DIR"),
    *("VEL_READER", "VEL_LIMIT", "VEL_SIDE", "VEL_BYTES", "VEL_PIXELS", "VEL_ONLY"),
    *("VEL_PAGE", "VEL_PAGES", "VEL_ZOOM"),
    *("VEL_CLOCK_URL", "VEL_BACKUP_PASSPHRASE"),
}
"""Variables that Vel sets for its subprocesses, one of a command, and an example."""


def found(monkeypatch: pytest.MonkeyPatch, **environ: str) -> list[str]:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return [
        str(warning.msg)
        for warning in run_checks()
        if warning.id == "vel.W006" and any(name in warning.msg for name in environ)
    ]


def test_an_unknown_variable_is_reported_with_the_nearest_known_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(monkeypatch, VEL_ALOWED_HOSTS="x", VEL_QXZ="1") == [
        "The environment variable VEL_ALOWED_HOSTS has no effect. Did you mean VEL_ALLOWED_HOSTS?",
        "The environment variable VEL_QXZ has no effect.",
    ]


def test_servers_show_an_unknown_variable_when_they_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    monkeypatch.setenv("VEL_ALOWED_HOSTS", "x")
    refuse_unsafe()
    lines = [line for line in capsys.readouterr().out.splitlines() if "VEL_ALOWED_HOSTS" in line]
    assert len(lines) == 1
    assert lines[0].endswith("Did you mean VEL_ALLOWED_HOSTS? (vel.W006)")


def test_known_variables_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, VEL_SLACK_URL="x", VEL_SKILLS_DIRS="", VEL_INSECURE_HTTP="1") == []
    assert found(monkeypatch, VEL_BACKUP_PASSPHRASE="a passphrase of a command") == []


def test_variables_of_a_cluster_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {
        "VEL_SERVICE_HOST": "10.0.0.1",
        "VEL_SERVICE_PORT": "80",
        "VEL_SERVICE_PORT_HTTP": "80",
        "VEL_PORT": "tcp://10.0.0.1:80",
        "VEL_PORT_80_TCP": "tcp://10.0.0.1:80",
        "VEL_PORT_80_TCP_ADDR": "10.0.0.1",
        "VEL_DB_SERVICE_HOST": "10.0.0.2",
    }
    assert found(monkeypatch, **cluster) == []


class OldSettings(FeatureSettings):
    """Old settings"""

    DICTIONARY = "VEL_OLD"
    SLOW: Annotated[int, About(deprecated="Set VEL_FAST. Vel 0.3 removes it.")] = 1
    KEPT: int = 2


def test_a_deprecated_variable_is_reported_with_its_replacement() -> None:
    environ = {"VEL_SLOW": "1", "VEL_KEPT": "1"}
    assert deprecated_settings([OldSettings], environ) == [
        ("VEL_SLOW", "Set VEL_FAST. Vel 0.3 removes it.")
    ]


def test_a_deprecated_key_of_djangos_settings_is_reported(settings: Settings) -> None:
    settings.VEL_OLD = {"SLOW": 3, "KEPT": 4}
    assert deprecated_settings([OldSettings], {}) == [
        ('settings.VEL_OLD["SLOW"]', "Set VEL_FAST. Vel 0.3 removes it.")
    ]


def test_a_deprecated_setting_without_a_value_is_not_reported() -> None:
    assert deprecated_settings([OldSettings], {"VEL_SLOW": ""}) == []


def test_no_variable_of_the_server_is_one_of_an_app() -> None:
    refuse_duplicates([*installed(), ServerSettings])


def variables_in_code() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    for name in re.findall(r"\bVEL_[A-Z][A-Z_]*[A-Z]\b", node.value):
                        yield name, str(file.relative_to(ROOT))


@pytest.mark.slow
def test_every_variable_that_the_code_names_is_declared() -> None:
    declared = {
        variable
        for declared_in in (*installed(), ServerSettings)
        for setting in settings_of(declared_in)
        for variable in setting.variables
    }
    dictionaries = {declared_in.DICTIONARY for declared_in in installed()}
    named = dict(variables_in_code())
    unknown = {name: file for name, file in named.items() if name not in declared}
    assert set(unknown) - dictionaries - NO_SETTINGS == set(), unknown
    assert "VEL_PUBLIC_URL" in named

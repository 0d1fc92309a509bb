"""Each setting is declared once; its declaration reads, checks and explains it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from agents.features.slack.settings import SlackSettings
from agents.kernel.settings import (
    About,
    Bytes,
    FeatureSettings,
    Positive,
    Seconds,
    Secret,
    Setting,
    declarations,
    find_problems,
    forget,
    installed,
    read_environment,
    refuse_duplicates,
    settings_of,
)
from agents.settings import MachineSettings, ModelSettings, WorkerSettings


def word(text: str) -> str:
    """Refuse all but words."""
    if not text.isalpha():
        raise ValueError("a word")
    return text.lower()


class ClockSettings(FeatureSettings):
    """Clocks"""

    CLOCK_URL: str = "https://clock.example/"
    """Address of the clock."""
    CLOCK_PATIENCE: Seconds = 5.0
    CLOCK_CALLS: Positive = 3
    CLOCK_ROOM: Bytes = 100
    CLOCK_IS_LOUD: bool = False
    CLOCK_ZONES: tuple[str, ...] = ("UTC",)
    CLOCK_PLACE: Path = Path("/clock")
    CLOCK_SPARE: Path | None = None
    CLOCK_KEY: Secret = ""
    CLOCK_NAME: Annotated[str, About(parse=word, variables=("CLOCK", "OLD_CLOCK"))] = "big"
    CLOCK_SOCKET: Annotated[str, About(variables=())] = "/ws/"


BY_NAME = {one.name: one for one in settings_of(ClockSettings)}


def read(**environ: str) -> dict[str, Any]:
    return read_environment([ClockSettings], environ)["VEL"]


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("VEL_CLOCK_URL", " https://x ", "https://x"),
        ("VEL_CLOCK_PATIENCE", "2.5", 2.5),
        ("VEL_CLOCK_CALLS", "7", 7),
        ("VEL_CLOCK_ROOM", "0", 0),
        ("VEL_CLOCK_IS_LOUD", "Yes", True),
        ("VEL_CLOCK_IS_LOUD", "off", False),
        ("VEL_CLOCK_ZONES", " a, ,b ", ("a", "b")),
        ("VEL_CLOCK_ZONES", "", ()),
        ("VEL_CLOCK_PLACE", "~/x", Path("~/x").expanduser()),
        ("VEL_CLOCK_SPARE", "/y", Path("/y")),
        ("VEL_CLOCK_KEY", "k", "k"),
        ("CLOCK", "Ben", "ben"),
        ("OLD_CLOCK", "Ben", "ben"),
    ],
)
def test_a_variable_is_read_as_its_declared_type(variable: str, text: str, value: Any) -> None:
    (found,) = read(**{variable: text}).values()
    assert found == value
    assert type(found) is type(value)


def test_an_empty_variable_counts_as_not_set() -> None:
    names = [name for one in BY_NAME.values() if not one.is_list for name in one.variables]
    assert read(**dict.fromkeys(names, " ")) == {}


def test_of_two_variables_the_first_that_is_set_counts() -> None:
    assert read(CLOCK="one", OLD_CLOCK="two") == {"CLOCK_NAME": "one"}
    assert read(CLOCK="", OLD_CLOCK="two") == {"CLOCK_NAME": "two"}


def test_a_setting_without_variables_is_not_read_from_the_environment() -> None:
    assert read(VEL_CLOCK_SOCKET="/x/") == {}


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("VEL_CLOCK_PATIENCE", "soon", "a number of seconds, at least 0"),
        ("VEL_CLOCK_PATIENCE", "nan", "a number of seconds, at least 0"),
        ("VEL_CLOCK_PATIENCE", "inf", "a number of seconds, at least 0"),
        ("VEL_CLOCK_CALLS", "0", "a whole number, at least 1"),
        ("VEL_CLOCK_CALLS", "2.5", "a whole number, at least 1"),
        ("VEL_CLOCK_ROOM", "-1", "a whole number of bytes, at least 0"),
        ("VEL_CLOCK_IS_LOUD", "maybe", "1 or 0"),
        ("CLOCK", "a b", "a word"),
    ],
)
def test_a_wrong_variable_is_an_error_with_name_value_and_expectation(
    variable: str, text: str, expected: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(**{variable: text})
    assert str(refused.value) == f"{variable}: expected {expected}, got {text!r}."


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("CLOCK_CALLS", 4, 4),
        ("CLOCK_CALLS", 4.0, 4),
        ("CLOCK_CALLS", "4", 4),
        ("CLOCK_PATIENCE", 4, 4.0),
        ("CLOCK_IS_LOUD", 1, True),
        ("CLOCK_IS_LOUD", "", False),
        ("CLOCK_IS_LOUD", "0", False),
        ("CLOCK_ZONES", ["a"], ("a",)),
        ("CLOCK_ZONES", [Path("/a")], ("/a",)),
        ("CLOCK_PLACE", "/z", Path("/z")),
        ("CLOCK_SPARE", "", None),
        ("CLOCK_URL", Path("/z"), "/z"),
        ("CLOCK_URL", None, "https://clock.example/"),
        ("CLOCK_CALLS", None, 3),
    ],
)
def test_a_value_of_the_dictionary_becomes_its_declared_type(
    name: str, given: Any, value: Any
) -> None:
    found = BY_NAME[name].checked(given)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("CLOCK_CALLS", 0),
        ("CLOCK_CALLS", 2.5),
        ("CLOCK_CALLS", float("inf")),
        ("CLOCK_CALLS", []),
        ("CLOCK_PATIENCE", "soon"),
        ("CLOCK_IS_LOUD", 2),
        ("CLOCK_ZONES", "a,b"),
        ("CLOCK_ZONES", [1]),
        ("CLOCK_ZONES", 5),
        ("CLOCK_URL", 5),
        ("CLOCK_URL", b"x"),
        ("CLOCK_PLACE", 5),
    ],
)
def test_a_wrong_value_of_the_dictionary_is_an_error(name: str, given: Any) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        BY_NAME[name].checked(given)
    expected = f'settings.VEL["{name}"]: expected {BY_NAME[name].expected}, got {given!r}.'
    assert str(refused.value) == expected


def test_errors_and_repr_show_no_secret() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        BY_NAME["CLOCK_KEY"].checked(b"hunter2")
    assert str(refused.value) == 'settings.VEL["CLOCK_KEY"]: expected a text, got bytes.'
    shown = repr(ClockSettings(CLOCK_KEY="hunter2"))
    assert "hunter2" not in shown
    assert "CLOCK_CALLS=3" in shown


def test_settings_cannot_be_changed_and_have_no_other_names() -> None:
    found = ClockSettings(CLOCK_CALLS=7)
    assert (found.CLOCK_CALLS, found.CLOCK_ROOM) == (7, 100)
    with pytest.raises(FrozenInstanceError):
        found.CLOCK_CALLS = 8  # type: ignore[misc]
    with pytest.raises(TypeError, match="ClockSettings has no setting CLOCK"):
        ClockSettings(CLOCK=8)  # type: ignore[call-arg]


@pytest.mark.parametrize("declared_in", installed())
def test_no_settings_show_their_secrets(declared_in: type[FeatureSettings]) -> None:
    secret = {one.name: "hunter2" for one in settings_of(declared_in) if one.about.is_secret}
    assert "hunter2" not in repr(declared_in(**secret))


def test_a_long_wrong_value_is_shown_in_part() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(VEL_CLOCK_CALLS="x" * 10_000)
    assert len(str(refused.value)) < 300


def test_settings_are_read_again_after_a_change(settings: Any) -> None:
    assert SlackSettings.now() is SlackSettings.now()
    with override_settings(VEL={**settings.VEL, "SLACK_URL": "http://one/"}):
        assert SlackSettings.now().SLACK_URL == "http://one/"
    settings.VEL = {**settings.VEL, "SLACK_URL": "http://two/"}
    assert SlackSettings.now().SLACK_URL == "http://two/"


def test_one_wrong_setting_spares_those_of_other_classes(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "LEASE_SECONDS": "soon"}
    assert SlackSettings.now().SLACK_URL
    with pytest.raises(ImproperlyConfigured, match="LEASE_SECONDS"):
        WorkerSettings.now()


def test_an_unknown_key_is_refused_with_the_nearest_known_one(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "RUNS_PER_WORKERS": 3}
    message = "settings.VEL has an unknown key 'RUNS_PER_WORKERS'. Did you mean RUNS_PER_WORKER?"
    with pytest.raises(ImproperlyConfigured) as refused:
        SlackSettings.now()
    assert str(refused.value) == message
    assert [error.msg for error in run_checks() if error.id == "vel.E008"] == [message]


def test_the_check_reports_every_problem(settings: Any) -> None:
    settings.VEL = {**settings.VEL, "LEASE_SECONDS": -1, "XYZ": 1}
    settings.VEL_SKILLS = {"FILES": "many"}
    found = list(find_problems())
    assert [dictionary for dictionary, _ in found] == ["VEL", "VEL", "VEL_SKILLS"]
    assert "'XYZ'. Remove it" in found[0][1]
    ids = sorted(str(error.id) for error in run_checks() if "expected" in error.msg)
    assert ids == ["vel.E008", "vel.E009"]


def test_an_invalid_dictionary_is_reported(settings: Any) -> None:
    settings.VEL = ["DATA_DIR"]
    assert ("VEL", "settings.VEL: expected a dictionary, got list.") in list(find_problems())


class SecondClockSettings(FeatureSettings):
    """Clocks of another feature"""

    CLOCK_CALLS: int = 1


class ThirdClockSettings(FeatureSettings):
    """Clocks with a variable that another setting has"""

    TIME: Annotated[str, About(variables=("VEL_CLOCK_URL",))] = ""


@pytest.mark.parametrize(
    ("other", "name"),
    [(SecondClockSettings, "VEL_CLOCK_CALLS"), (ThirdClockSettings, "VEL_CLOCK_URL")],
)
def test_a_name_that_two_classes_declare_is_an_error_with_both(
    other: type[FeatureSettings], name: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_duplicates([ClockSettings, other])
    for part in (f"{name} is declared twice", "ClockSettings", other.__name__):
        assert part in str(refused.value)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module `settings` of an invented app."""
    module = ModuleType("clock.settings")
    module.SETTINGS = (ClockSettings,)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "clock", ModuleType("clock"))
    monkeypatch.setitem(sys.modules, "clock.settings", module)
    yield module
    forget()


def test_declarations_come_from_the_module_settings_of_each_app(app: ModuleType) -> None:
    found = declarations(["clock.apps.ClockConfig", "memory", "agents", "clock"])
    assert found[0] is ClockSettings
    assert ModelSettings in found
    assert found.count(ClockSettings) == 1


def test_the_settings_of_an_app_go_with_it(settings: Any) -> None:
    settings.VEL = {"SLACK_URL": "https://slack.example/"}
    assert SlackSettings in installed()
    assert not list(find_problems())
    slack = "agents.features.slack"
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != slack]
    assert SlackSettings not in installed()
    with pytest.raises(ImproperlyConfigured, match="unknown key 'SLACK_URL'"):
        ModelSettings.now()


def test_an_app_that_declares_a_known_name_is_refused(app: ModuleType) -> None:
    class Taken(FeatureSettings):
        PROVIDER: str = ""

    app.SETTINGS = (Taken,)  # type: ignore[attr-defined]
    with pytest.raises(ImproperlyConfigured, match=r"VEL_PROVIDER is declared twice.*Taken"):
        declarations(["agents", "clock"])


def test_a_module_settings_that_lacks_another_module_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_clock").mkdir()
    (tmp_path / "broken_clock/__init__.py").touch()
    (tmp_path / "broken_clock/settings.py").write_text("import no_such_module_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        declarations(["broken_clock"])


def test_programs_read_the_same_variables_as_before() -> None:
    programs = {
        variable
        for declared_in in installed()
        if declared_in.IN_PROGRAMS
        for one in settings_of(declared_in)
        for variable in one.variables
    }
    assert programs >= {
        *("VEL_PROVIDER", "VEL_MODEL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        *("OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
        *("GOOGLE_GEMINI_BASE_URL", "VEL_FALLBACK_WITHOUT_KEY", "VEL_IMAGE_MODELS"),
        *("VEL_RESERVE_BYTES", "VEL_SECRET_KEYS", "VEL_GUARDRAILS", "VEL_HOOKS", "VEL_TOOLS"),
        "VEL_SKILLS_DIRS",
    }
    assert not programs & {"VEL_HOST", "VEL_DATA_DIR", "VEL_SCRIPTS_DIR", "VEL_STORAGE_URL"}


@pytest.mark.parametrize(
    ("module", "name", "is_refused"),
    [("skills_app.settings", "SkillSettings", False), ("agents.settings", "PageSettings", True)],
)
def test_the_defaults_count_without_django_only_if_the_class_allows_it(
    module: str, name: str, is_refused: bool
) -> None:
    environ = {key: value for key, value in os.environ.items() if "DJANGO" not in key}
    code = f"from {module} import {name}; {name}.now()"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert (done.returncode, "settings are not configured" in done.stderr) == (
        int(is_refused),
        is_refused,
    )


def test_the_key_of_google_has_two_variables_and_the_first_counts() -> None:
    (read_key,) = [one for one in settings_of(ModelSettings) if one.name == "GOOGLE_API_KEY"]
    assert isinstance(read_key, Setting)
    assert read_key.read({"GEMINI_API_KEY": "b", "GOOGLE_API_KEY": "a"}) == "a"
    assert read_key.read({"GEMINI_API_KEY": "b"}) == "b"


def test_the_name_of_a_machine_has_letters_digits_dots_and_hyphens() -> None:
    def name(text: str) -> Any:
        return read_environment([MachineSettings], {"VEL_HOST": text})["VEL"]["HOST"]

    for good in ("vel-1", "a", "host.example.org"):
        assert name(good) == good
    assert name("hostname") not in ("", "hostname")
    for wrong in ("a b", "-a", "a@b", "a" * 64, "a/b"):
        with pytest.raises(ImproperlyConfigured, match="VEL_HOST"):
            name(wrong)

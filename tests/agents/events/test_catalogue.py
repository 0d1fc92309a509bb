"""The event catalogue: its content, its checks, and its generated files."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import override_settings

from agents.engine.storage.journal import write_events
from agents.events.append import append_events
from agents.events.catalogue.messages import TextDelta
from agents.events.catalogue.tool_calls import ToolStarted
from agents.events.event import Event, InvalidEvent
from agents.events.event_schema import events_schema, field_docs, shapes_of
from agents.events.read import read_events
from agents.events.registry import declared_classes, event_modules, event_types
from tests.agents.engine.by_hand import claimed, committed, new_run
from tests.support import site_writer

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "agents/static"
NOTICE = ("agents/services/approvals/notices.py", "approval.requested")
"""The type of a notice with the same name as an event."""


@dataclass(frozen=True, kw_only=True)
class Undeclared(Event):
    """An event that is in no list `EVENTS`."""

    type: ClassVar[str] = "run.started"

    thread_id: str


@pytest.fixture
def run(db: None) -> str:
    site_writer.make_user("olga")
    return site_writer.make_run("olga")


# Writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event", [Undeclared(thread_id="t1"), ("text.delta", {"part_id": "1.0", "text": "a"})], ids=str
)
def test_only_instances_of_declared_classes_can_be_written(run: str, event: Any) -> None:
    with transaction.atomic(), pytest.raises(InvalidEvent, match="EVENTS"):
        append_events(run, [event])
    assert read_events(run) == []


@pytest.mark.django_db(transaction=True)
def test_a_driver_cannot_write_others_either() -> None:
    _, run = new_run()
    writer = claimed(run)
    before = read_events(run.pk)
    with pytest.raises(InvalidEvent, match="EVENTS"):
        committed(write_events, writer, [Undeclared(thread_id="t1")])
    assert read_events(run.pk) == before


def test_a_field_that_is_not_declared_cannot_be_given() -> None:
    with pytest.raises(TypeError, match="'tool'"):
        ToolStarted(call_id="c1", attempt=1, tool="ls")  # type: ignore[call-arg]


def test_a_field_that_is_declared_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="'attempt'"):
        ToolStarted(call_id="c1")  # type: ignore[call-arg]


def test_an_optional_field_that_is_not_given_is_not_in_the_data(run: str) -> None:
    with transaction.atomic():
        append_events(run, [ToolStarted(call_id="c1", attempt=1)])
    (event,) = read_events(run)
    assert list(event["data"]) == ["call_id", "attempt"]


def test_tests_and_development_refuse_values_of_other_types(run: str) -> None:
    wrong = TextDelta(part_id="1.0", text=7)  # type: ignore[arg-type]
    with transaction.atomic(), pytest.raises(InvalidEvent, match=r"text\.delta: text: .*string"):
        append_events(run, [wrong])


@override_settings(VEL={"CHECK_EVENTS": False})
def test_production_does_not_look_at_values(run: str) -> None:
    with transaction.atomic():
        append_events(run, [TextDelta(part_id="1.0", text=7)])  # type: ignore[arg-type]
    assert read_events(run)[0]["data"]["text"] == 7


# Declaring -------------------------------------------------------------------------------------


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the directory of an installed app. A test writes its module `events`."""
    directory = tmp_path / "weather_feature"
    directory.mkdir()
    (directory / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield directory
    for name in ("weather_feature", "weather_feature.events"):
        sys.modules.pop(name, None)
    forget()


def forget() -> None:
    for found in (event_modules, event_types, declared_classes):
        found.cache_clear()


HEAD = """\
from dataclasses import dataclass
from typing import ClassVar
from agents.events.event import Event

"""
RAIN = f"""{HEAD}
@dataclass(frozen=True, kw_only=True)
class RainStarted(Event):
    "It rains."

    type: ClassVar[str] = "rain.started"

    millimetres: float
    "Rain in an hour."

EVENTS = [RainStarted]
"""


def installed(app: Path, code: str) -> override_settings:
    from django.conf import settings

    (app / "events.py").write_text(code)
    forget()
    return override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, "weather_feature"])


def test_an_installed_app_has_its_own_event_types(app: Path, run: str) -> None:
    with installed(app, RAIN):
        rain = event_types()["rain.started"]
        with transaction.atomic():
            append_events(run, [rain(millimetres=2.5)])  # type: ignore[call-arg]
        schema = events_schema()
    assert read_events(run)[0]["data"] == {"millimetres": 2.5}
    assert schema["$defs"]["RainStarted"]["properties"]["millimetres"] == {
        "description": "Rain in an hour.",
        "type": "number",
    }


def test_a_module_of_that_name_without_a_list_is_left_alone(app: Path) -> None:
    with installed(app, "RAIN = 1\n"):
        assert "weather_feature.events" not in {module.__name__ for module in event_modules()}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (RAIN.replace('"rain.started"', '"run.started"'), "'run.started' is also declared in"),
        (RAIN.replace("@dataclass(frozen=True, kw_only=True)", ""), "not a dataclass"),
        (RAIN.replace('    type: ClassVar[str] = "rain.started"', ""), "has no type"),
        (RAIN.replace("[RainStarted]", '["rain.started"]'), "not a subclass"),
        ("import nowhere_to_be_found\n", "cannot be imported"),
    ],
    ids=["twice", "no dataclass", "no type", "no class", "no import"],
)
def test_an_invalid_event_type_is_an_error_of_the_checks(
    app: Path, code: str, problem: str
) -> None:
    with installed(app, code):
        with pytest.raises(ImproperlyConfigured, match=r"weather_feature\.events"):
            event_types()
        (error,) = [found for found in run_checks() if found.id == "vel.E018"]
    assert problem in error.msg


# Generated files and documentation -------------------------------------------------------------


def test_each_event_and_each_field_is_documented() -> None:
    for declared in event_types().values():
        assert declared.__doc__, declared
        names = {field.name for field in fields(declared)}  # type: ignore[arg-type]
        assert names == set(field_docs(declared)), declared
        for shape in shapes_of(declared):
            assert shape.__doc__, shape
            assert set(shape.__annotations__) == set(field_docs(shape)), shape


def test_the_schema_takes_an_event_and_refuses_others() -> None:
    schema = jsonschema.Draft202012Validator(events_schema())
    event = {"seq": 1, "type": "tool.started", "ts": "2026-01-31T12:00:00.123Z"}
    assert schema.is_valid({**event, "data": {"call_id": "c1", "attempt": 1}})
    assert schema.is_valid({**event, "data": {"call_id": "c1", "attempt": 1, "grant_id": "g"}})
    assert not schema.is_valid({**event, "data": {"call_id": "c1", "attempt": "1"}})
    assert not schema.is_valid({**event, "data": {"attempt": 1}})
    assert not schema.is_valid({**event, "type": "tool.lost", "data": {}})


# Names in the code -----------------------------------------------------------------------------


@pytest.mark.slow
def test_no_python_code_has_the_name_of_a_type_as_text() -> None:
    names = set(event_types())
    declared = {Path(str(module.__file__)) for module in event_modules()}
    found = []
    for package in (
        "agents",
        "skills_app",
        "memory",
        "text_scanner",
        "language_model",
        "velproject",
        "sandbox",
        "benchmarks",
    ):
        for path in sorted((ROOT / package).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if "/migrations/" in place or path in declared:
                continue
            found += [(place, name) for name in texts_of(path) if name in names]
    assert found == [NOTICE]


def texts_of(path: Path) -> list[str]:
    """Return the texts in a file's code, without audit actions, which can have the same names."""
    tree = ast.parse(path.read_text())
    audited = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "record" and node.args
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in audited
    ]


def test_javascript_has_no_names_of_types_but_the_generated_ones() -> None:
    scripts = {path: path.read_text() for path in STATIC.rglob("*.js")}
    (generated,) = [path for path in scripts if path.name == "event_types.js"]
    known = set(re.findall(r"export const (\w+)", scripts.pop(generated)))
    names = "|".join(map(re.escape, event_types()))
    used = set()
    for path, text in scripts.items():
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        assert not re.findall(rf"""["'`](?:{names})["'`]""", code), path
        used |= set(re.findall(r"\btypes\.([A-Z_]+)", text))
    assert used
    assert used <= known

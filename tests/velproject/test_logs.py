"""Logs as lines of JSON, with any content."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from hypothesis import given
from hypothesis import strategies as st

from agents.telemetry.log_context import logged_about
from tests.support.runs import drive_to_end, make_agent, make_user, start_run
from tests.support.site import ROOT
from velproject.logs import (
    LONGEST,
    LONGEST_TRACEBACK,
    DatabaseAway,
    JsonFormatter,
    LineFormatter,
)
from velproject.up import as_record

HOSTILE = (
    "one\ntwo", "one\r\ntwo", "\x1b[2J\x1b]0;title\x07", "a\x00b", "line\u2028sep\u2029",
    "\x85next", "\ud800", '{"level": "CRITICAL"}', '"}\n{"message": "forged"}', "\u202eevil",
    "\x9b31m",
)  # fmt: skip
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("tests.logs")
    logger.addHandler(handler)
    logger.setLevel("INFO")
    logger.propagate = False
    yield logger, stream
    logger.removeHandler(handler)
    logger.propagate = True


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    text = stream.getvalue()
    assert text.isascii()
    assert text.endswith("\n")
    lines = text.splitlines()
    assert all(ord(char) >= 0x20 for line in lines for char in line)
    return [json.loads(line) for line in lines]


def write(
    logger: logging.Logger,
    level: int,
    message: str,
    values: tuple[object, ...],
    error: Any = None,
    extra: Any = None,
) -> None:
    """Log like `logger.log`, but without pytest's handlers, which fail on lone surrogates."""
    record = logger.makeRecord(logger.name, level, "", 0, message, values, error, extra=extra)
    logger.handlers[0].handle(record)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_one_line_of_json(
    log: tuple[logging.Logger, io.StringIO], text: str
) -> None:
    logger, stream = log
    extra = {"run_id": text, f"k{text}": text, "level": "x"}
    write(logger, logging.WARNING, "a tool said %s", (text,), extra=extra)
    try:
        raise ValueError(text)
    except ValueError:
        write(logger, logging.ERROR, "it failed", (), sys.exc_info())
    first, second = records(stream)
    assert first["message"] == f"a tool said {text}"
    assert (first["level"], first["logger"]) == ("WARNING", "tests.logs")
    assert first["run_id"] == text
    assert second["message"] == "it failed"
    assert "ValueError" in second["exception"]


@given(st.text(), st.text(), st.floats())
def test_any_text_is_one_line(message: str, name: str, value: float) -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, message, None, None)
    record.__dict__.update({f"_{name}": 1, f"z{name}": value, "field": name})
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert "\n" not in line
    assert "\r" not in line
    found = json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found["field"] == name or len(name) > LONGEST
    text = LineFormatter().format(record)
    assert len(text.splitlines()) == 1


def test_the_text_of_an_error_makes_no_separate_record() -> None:
    forged = "2026-01-31T12:00:00 WARNING agents.services.audit erased by ada"
    try:
        raise ValueError(f"no\n{forged}\r\n{forged}\x85{forged}\u2028{forged}")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "it failed", None, sys.exc_info())
    first, *rest = LineFormatter().format(record).splitlines()
    assert first.endswith("ERROR x it failed")
    assert len(rest) > 3
    assert all(line.startswith("  | ") for line in rest)


def test_keys_are_masked_and_long_texts_cut(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    logger.info("sent %s", KEY, extra={"header": f"Bearer {KEY}"})
    logger.info("x" * (2 * LONGEST))
    wrong = logging.LogRecord("tests.logs", logging.INFO, "", 0, "%d items", ("none",), None)
    logger.handlers[0].handle(wrong)  # not through pytest's handler, which raises
    try:
        raise RuntimeError(f"https://ada:{'p' * 20}@db.example/ and {KEY}")
    except RuntimeError:
        logger.exception("no")
    found = records(stream)
    assert KEY not in stream.getvalue()
    assert "pppppppp" not in stream.getvalue()
    assert len(found[1]["message"]) == LONGEST
    assert found[2]["message"] == "%d items"


def test_lines_of_text_hide_nothing_and_show_no_key() -> None:
    try:
        raise RuntimeError(f"{KEY} \u202e")
    except RuntimeError:
        record = logging.LogRecord(
            "x", logging.ERROR, "", 0, "sent %s \u202eevil\u200b", (KEY,), sys.exc_info()
        )
    record.__dict__.update({"header": f"Bearer {KEY}", "long": "x" * (2 * LONGEST)})
    text = LineFormatter().format(record)
    assert KEY not in text
    assert "sent [secret withheld] ⟨U+202E⟩evil⟨U+200B⟩" in text
    assert "header=Bearer [secret withheld]" in text
    assert "RuntimeError: [secret withheld] ⟨U+202E⟩" in text
    assert text.count("x") < LONGEST + 100
    wrong = logging.LogRecord("x", logging.INFO, "", 0, "%d items", ("none",), None)
    assert LineFormatter().format(wrong).endswith("INFO x %d items")


@pytest.mark.parametrize("formatter", [LineFormatter(), JsonFormatter()])
def test_half_a_key_at_the_cut_is_masked_like_a_whole_one(formatter: logging.Formatter) -> None:
    for kept in range(8, len(KEY), 6):
        text = "x " * ((LONGEST - kept) // 2) + KEY
        record = logging.LogRecord("x", logging.INFO, "", 0, "%s", (text,), None)
        assert KEY[:8] not in formatter.format(record)
        try:
            raise RuntimeError(KEY + " x" * ((LONGEST_TRACEBACK - kept) // 2))
        except RuntimeError:
            record.exc_info = sys.exc_info()
        line = formatter.format(record)
        assert KEY[-8:] not in line
        assert len(line) < LONGEST + LONGEST_TRACEBACK + 1_000


def test_fields_with_other_values_and_reserved_names_are_omitted() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "it", None, None)
    record.__dict__.update(
        {"_own": "a", "row": {"password": "b"}, "time": "c", f"n {KEY}": 1, "n\nb": 2}
    )
    told = json.loads(JsonFormatter().format(record))
    assert {"_own", "row"}.isdisjoint(told)
    assert told["time"] != "c"
    assert (told["n [secret withheld]"], told["n\nb"]) == (1, 2)
    text = LineFormatter().format(record)
    assert "password" not in text
    assert KEY not in text
    assert len(text.splitlines()) == 1


def test_lines_about_a_run_say_which(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, stream = log
    with logged_about(run_id="r", thread_id="t", user_id=7):
        logger.info("inside")
    logger.info("outside")
    inside, outside = records(stream)
    assert (inside["run_id"], inside["thread_id"], inside["user_id"]) == ("r", "t", 7)
    assert "run_id" not in outside


@pytest.mark.django_db(transaction=True)
def test_an_engines_lines_have_the_ids_and_not_the_words() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("agents")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("DEBUG")
    try:
        user = make_user()
        make_agent(user, model="no-such-script")
        run = drive_to_end(start_run(user, "Something private"))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    for message in ("claimed", "the model failed"):
        line = next(each for each in records(stream) if message in each["message"])
        ids = (line["run_id"], line["thread_id"], line["user_id"])
        assert ids == (run.pk, run.thread_id, user.pk)
    assert "private" not in stream.getvalue()


def test_the_supervisors_lines_are_json_too() -> None:
    own = json.loads(as_record("stopping\x1b[2J", "vel"))
    assert (own["message"], own["child"]) == ("stopping\x1b[2J", "vel")
    child = json.loads(as_record('{"message": "x", "level": "ERROR"}', "workers"))
    assert child == {"message": "x", "level": "ERROR", "child": "workers"}
    deep = json.loads(as_record('{"a":' * 100_000, "web"))
    assert deep["message"].startswith('{"a":{"a":')
    broken = json.loads(as_record('{"message": ', "web"))
    assert broken["message"] == '{"message": '
    for line in ("{}\x1b", "{1}", "Traceback (most recent call last):"):
        assert as_record(line, "web").isascii()


@pytest.mark.slow
def test_the_setting_chooses_the_format() -> None:
    code = "import django; django.setup(); import logging; logging.getLogger('x').warning('a\\nb')"
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "velproject.settings", "VEL_LOG_FORMAT": "json",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert json.loads(done.stderr)["message"] == "a\nb"
    from django.core.exceptions import ImproperlyConfigured

    from velproject.server_settings import ServerSettings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VEL_LOG_FORMAT", "xml")
        with pytest.raises(ImproperlyConfigured, match="VEL_LOG_FORMAT: expected line or json"):
            ServerSettings.now()


def away_error() -> Exception:
    """Return Django's exception for a connection that PostgreSQL has ended."""
    error = OperationalError("the server has ended the connection")
    error.__cause__ = psycopg.errors.AdminShutdown()
    return error


@pytest.mark.parametrize(
    ("error", "is_away"), [(away_error(), True), (OperationalError("no such table: x"), False)]
)
def test_a_database_that_is_away_is_one_line_and_other_errors_have_tracebacks(
    error: Exception, is_away: bool
) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter())
    handler.addFilter(DatabaseAway())
    try:
        raise error
    except OperationalError:
        record = logging.LogRecord("x", 40, "", 0, "Failed: %s", ("/a",), sys.exc_info())
    handler.handle(record)
    first, *more = stream.getvalue().splitlines()
    if is_away:
        assert first.endswith(f"Failed: /a: {error}")
        assert more == []
    else:
        assert first.endswith("Failed: /a")
        assert "Traceback" in more[0]

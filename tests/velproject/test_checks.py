"""Unsafe settings are refused, safe ones are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from pytest_django.fixtures import Settings

from tests.velproject.command import Vel
from velproject.checks import exposure as checks

GOOD_KEY = "wR8#kP2m!Zq7vT5x^Lc9bN4j&Hs6dF3g"


@pytest.fixture(autouse=True)
def _safe_server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of a safe server on the network. Each test breaks one of them."""
    settings.ALLOWED_HOSTS = ["vel.example.org", "localhost"]
    settings.DEBUG = False
    settings.SECRET_KEY = GOOD_KEY
    settings.HTTPS = True
    monkeypatch.delenv("VEL_INSECURE_HTTP", raising=False)


def found() -> set[str]:
    return {str(message.id) for message in run_checks() if str(message.id).startswith("vel.E")}


def test_a_safe_server_passes() -> None:
    assert found() == set()


def test_debug_on_the_network_is_refused(settings: Settings) -> None:
    settings.DEBUG = True
    assert found() == {"vel.E001"}


@pytest.mark.parametrize(
    "key",
    [
        "short",
        "a" * 60,
        "django-insecure-" + GOOD_KEY,
        "not-a-secret-only-for-tests-" + GOOD_KEY,
    ],
)
def test_a_weak_key_on_the_network_is_refused(settings: Settings, key: str) -> None:
    settings.SECRET_KEY = key
    assert found() == {"vel.E002"}


@pytest.mark.parametrize("first", ["short", "a" * 60, "changeme-" + GOOD_KEY])
def test_a_weak_key_for_stored_secrets_is_refused_everywhere(
    settings: Settings, first: str
) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    settings.VEL = {**settings.VEL, "SECRET_KEYS": (first, GOOD_KEY)}
    assert found() == {"vel.E011"}
    settings.VEL = {**settings.VEL, "SECRET_KEYS": (GOOD_KEY, first)}  # replaced by a new key
    assert found() == set()


def test_an_empty_key_is_weak() -> None:
    assert checks.weak_key("") == "is empty"


def test_plain_http_on_the_network_is_refused_unless_configured(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HTTPS = False
    assert found() == {"vel.E003"}
    monkeypatch.setenv("VEL_INSECURE_HTTP", "1")
    assert found() == set()


def test_any_host_name_at_all_is_refused(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert found() == {"vel.E004"}


def test_all_of_it_is_allowed_for_this_machine_alone(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "vel.localhost"]
    settings.DEBUG, settings.HTTPS, settings.SECRET_KEY = True, False, "short"
    assert found() == set()


def test_root_needs_a_data_directory_that_others_can_walk_to(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "vel").mkdir(mode=0o711)
    settings.DATA_DIR = closed / "vel"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert found() == {"vel.E005"}
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert found() == set()


@pytest.mark.parametrize(
    ("host", "anonymous"),
    [
        ("redis://cache:6379/0", True),
        (("cache", 6379), True),
        ({"address": "redis://cache:6379"}, True),
        ("redis://:sesame@cache:6379/0", False),
        ({"address": "redis://cache:6379", "password": "sesame"}, False),
        ("unix:///run/redis.sock", False),
    ],
)
def test_a_redis_without_a_password_is_refused(
    settings: Settings, host: Any, anonymous: bool
) -> None:
    backend = "channels_redis.core.RedisChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [host]}}}
    assert ("vel.E007" in found()) is anonymous


def test_a_setting_that_means_nothing_is_named(settings: Settings) -> None:
    settings.VEL = {**settings.VEL, "RUNS_PER_WORKERS": 3}
    assert found() == {"vel.E008"}


def test_a_database_that_others_may_read_is_warned_of(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "vel.sqlite3"
    path.touch(mode=0o600)
    assert not checks.readable_by_others(path)
    path.chmod(0o640)
    assert checks.readable_by_others(path)
    assert not checks.readable_by_others(tmp_path / "not there yet")


def test_vel_up_refuses_to_open_an_unsafe_server(vel: Vel) -> None:
    for arguments, environment, says in (
        (("up", "--port", "0", "--host", "0.0.0.0"), {}, "vel.E003"),
        (
            ("worker",),
            {"VEL_ALLOWED_HOSTS": "vel.example.org", "VEL_HTTPS": "1", "VEL_DEBUG": "1"},
            "vel.E001",
        ),
    ):
        done = vel(*arguments, **environment)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert says in line

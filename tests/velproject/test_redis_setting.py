"""`VEL_REDIS_URL` as the settings read it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from velproject import env
from velproject.checks.exposure import is_anonymous_redis


def test_without_a_url_messages_stay_in_each_process() -> None:
    assert env.channel_layers("")["default"]["BACKEND"] == "channels.layers.InMemoryChannelLayer"


@pytest.mark.parametrize(
    "url", ["redis://:secret@cache:6379/0", "rediss://:secret@cache/0", "unix:///run/redis.sock"]
)
def test_the_url_goes_to_the_channel_layer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "find_spec", lambda name: name)
    layer: dict[str, Any] = env.channel_layers(url)["default"]
    assert layer["BACKEND"] == "channels_redis.core.RedisChannelLayer"
    (host,) = layer["CONFIG"]["hosts"]
    assert host["address"] == url
    assert host["socket_timeout"] > 5  # the time that channels-redis waits for a message
    assert not is_anonymous_redis(host)


def test_a_url_without_a_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "find_spec", lambda name: name)
    (host,) = env.channel_layers("redis://cache:6379/0")["default"]["CONFIG"]["hosts"]
    assert is_anonymous_redis(host)


@pytest.mark.parametrize("url", ["cache:6379", "http://:secret@cache", "redis://", "unix://"])
def test_another_url_is_an_error_without_the_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="Invalid VEL_REDIS_URL") as refused:
        env.channel_layers(url)
    assert "secret" not in str(refused.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "find_spec", lambda name: None)
    with pytest.raises(ImproperlyConfigured, match=r"pip install 'vel\[redis\]'"):
        env.channel_layers("redis://:secret@cache:6379/0")

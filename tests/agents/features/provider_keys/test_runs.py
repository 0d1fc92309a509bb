"""Runs use the present key: a new one within seconds, and never a removed one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.features.provider_keys import jobs
from agents.features.provider_keys.actions import remove_key, set_key
from agents.features.provider_keys.models import ProviderKey
from agents.providers import registry
from agents.providers.base import PromptHead, ProviderError
from agents.providers.present import PresentProvider
from agents.providers.registry import ProviderSettings
from agents.providers.stored_keys import stored_key
from agents.secret_text import SecretText
from agents.services.agent_definitions.settings_places import settings_of
from tests.agents.features.guardrails.test_costs import statements
from tests.sandbox.places import reachable_directory
from tests.support.cluster import Cluster
from tests.support.hang import HANG
from tests.support.messages_api import MessagesServer
from tests.support.messages_script import Fault, Request, ToolUse, Turn
from tests.support.runs import (
    drive_to_end,
    events,
    make_agent,
    make_user,
    running_worker,
    start_run,
    wait_for_status,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)

FIRST = "sk-first-" + "a1" * 15
SECOND = "sk-second-" + "b2" * 15
LOOK = Turn("Looking.", [ToolUse("ls", {"path": "/"})])


@pytest.fixture
def ada() -> User:
    return make_user()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with reachable_directory() as directory:
        yield directory


def keys_of(server: MessagesServer) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]


def on(settings: Any, server: MessagesServer, user: User) -> None:
    settings.VEL = {
        **settings.VEL,
        "ANTHROPIC_BASE_URL": server.url,
        "RETRY_BASE_SECONDS": 0.01,
    }
    make_agent(user, provider="anthropic", model="claude-sonnet-5-5")


def test_a_worker_uses_a_new_key_and_not_a_removed_one(ada: User, settings: Any) -> None:
    with MessagesServer([Turn("One."), Turn("Two."), Turn("Three.")]) as server:
        on(settings, server, ada)
        set_key("anthropic", FIRST, by=None)
        with running_worker():
            wait_for_status(start_run(ada), "completed")
            set_key("anthropic", SECOND, by=None)
            wait_for_status(start_run(ada), "completed")
            remove_key("anthropic", by=None)
            wait_for_status(start_run(ada), "completed")
    # Only the makers' own servers need a key.
    assert keys_of(server) == [FIRST, SECOND, "no-key"]


def test_a_run_in_progress_uses_a_new_key_for_its_next_call(ada: User, settings: Any) -> None:
    """Also without the refresh of the process that stores the key: another process does that."""
    is_asked, may_answer = threading.Event(), threading.Event()
    turns: Iterator[Turn] = iter([LOOK, Turn("Done.")])

    def script(request: Request) -> Turn:
        is_asked.set()
        assert may_answer.wait(HANG)
        return next(turns)

    with MessagesServer(script) as server:
        on(settings, server, ada)
        set_key("anthropic", FIRST, by=None)
        with running_worker():
            run = start_run(ada)
            assert is_asked.wait(HANG)
            ProviderKey.objects.update(secret=SecretText.seal(SECOND))
            wait_until(lambda: (key := stored_key("anthropic")) and key.api_key == SECOND)
            may_answer.set()
            wait_for_status(run, "completed")
    assert keys_of(server) == [FIRST, SECOND]
    told = str(events(run))
    assert FIRST not in told
    assert SECOND not in told


def test_a_run_fails_without_a_request_if_the_base_url_has_changed(
    ada: User, settings: Any
) -> None:
    with MessagesServer([Turn("One.")]) as earlier, MessagesServer([Turn("Two.")]) as server:
        on(settings, earlier, ada)
        set_key("anthropic", FIRST, by=None)
        settings.VEL = {**settings.VEL, "ANTHROPIC_BASE_URL": server.url}
        run = drive_to_end(start_run(ada))
    assert (run.status, run.error_code) == ("failed", "model_unusable_key")
    assert f"is for {earlier.url}, and the base URL is now at {server.url}" in run.error_message
    assert FIRST not in run.error_message
    assert (earlier.accepted, server.accepted) == (0, 0)


def test_a_server_that_repeats_the_key_does_not_reveal_it(ada: User, settings: Any) -> None:
    fault = Fault("status", 401, "authentication_error", f"wrong key {FIRST}")
    with MessagesServer([Turn(fault=fault)]) as server:
        on(settings, server, ada)
        set_key("anthropic", FIRST, by=None)
        run = drive_to_end(start_run(ada))
    assert run.error_code == "model_authentication"
    assert "wrong key (key)" in run.error_message
    assert FIRST not in str(events(run))


def test_the_keys_are_read_once_for_each_claim_and_not_for_each_turn(
    ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "JOBS", [])
    table = ProviderKey._meta.db_table
    with MessagesServer([*[LOOK] * 8, Turn("Done.")]) as server:
        on(settings, server, ada)
        set_key("anthropic", FIRST, by=None)
        with statements() as seen:
            run = drive_to_end(start_run(ada))
    assert run.status == "completed", run.error_message
    assert keys_of(server) == [FIRST] * 9
    assert len([sql for sql in seen if table in sql]) == 1


def test_a_replaced_client_ends_its_calls_and_is_then_closed() -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def script(request: Request) -> Turn:
        if request.number == 0:
            is_asked.set()
            assert may_answer.wait(HANG)
        return Turn("Done.")

    async def use() -> None:
        provider = PresentProvider(
            "anthropic", lambda: ProviderSettings(current["key"], server.url)
        )
        head = PromptHead(model="claude-sonnet-5-5", system="")

        async def ask() -> list[Any]:
            conversation = provider.conversation(head)
            conversation.append("user", '[{"type": "text", "text": "Hello"}]')
            return [event async for event in provider.stream(conversation)]

        first = asyncio.create_task(ask())
        await asyncio.to_thread(is_asked.wait, HANG)
        old = provider._client.provider
        current["key"] = SECOND
        provider.check()
        assert provider._client.provider is not old
        assert old not in registry._made.values()
        may_answer.set()
        assert len(await first) > 1
        assert await asyncio.to_thread(server.wait_for, closed=1)
        await ask()
        current["key"] = FIRST
        provider.check()
        await asyncio.gather(*provider._closing)
        assert await asyncio.to_thread(server.wait_for, closed=2)
        await provider.close()

    current = {"key": FIRST}
    with MessagesServer(script) as server:
        asyncio.run(use())
    assert keys_of(server) == [FIRST, SECOND]


def test_a_removed_key_leaves_the_memory_of_the_clients() -> None:
    def kept() -> bool:
        return any(getattr(each, "_api_key", "") == key for each in registry._made.values())

    async def check(provider: PresentProvider) -> None:
        provider.check()

    key = "sk-third-" + "c3" * 15
    set_key("anthropic", key, by=None)
    provider = PresentProvider("anthropic", lambda: settings_of("anthropic"))
    assert kept()
    remove_key("anthropic", by=None)
    with pytest.raises(ProviderError, match="no API key"):
        asyncio.run(check(provider))
    assert not kept()


@pytest.mark.slow
def test_worker_processes_use_a_new_key_without_a_restart(ada: User, data_dir: Path) -> None:
    with MessagesServer([Turn("One."), Turn("Two."), Turn("Three.")]) as server:
        make_agent(ada, provider="anthropic", model="claude-sonnet-5-5")
        with (
            pytest.MonkeyPatch.context() as patch,
            Cluster(data_dir, workers=1, ANTHROPIC_BASE_URL=server.url) as cluster,
        ):
            patch.setenv("ANTHROPIC_BASE_URL", server.url)
            for key in (FIRST, SECOND):
                set_key("anthropic", key, by=None)
                wait_for_status(start_run(ada), "completed")
            remove_key("anthropic", by=None)
            wait_for_status(start_run(ada), "completed")
            log = cluster.log.read_text()
    assert keys_of(server) == [FIRST, SECOND, "no-key"]
    assert FIRST not in log
    assert SECOND not in log

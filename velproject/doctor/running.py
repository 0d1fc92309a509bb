"""The doctor's checks of workers and of the model. Import this after Django's set-up."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from urllib.parse import urlsplit

from django_q.models import OrmQ
from django_q.tasks import async_task

from agents.models import ProcessKind
from agents.providers.base import PromptHead, Provider, ProviderError, Reply
from agents.providers.prices import is_known
from agents.providers.registry import get_provider, is_official
from agents.selectors.metrics import ALIVE_SECONDS, seen_processes
from agents.services.agent_definitions.actions import default_model, default_provider
from agents.services.agent_definitions.settings_places import setting_names, settings_of
from agents.services.placement import queue_of
from agents.settings import MachineSettings
from velproject.doctor.findings import Finding, Level

ANSWER_SECONDS = 3.0
"""How long workers get to take a test task."""
CONNECT_SECONDS = 5.0


def check_workers() -> Finding:
    """Queue an empty task and check whether a worker takes it, if a worker has reported."""
    backlog = OrmQ.objects.count()
    workers = [each for each in seen_processes() if each.row.kind == ProcessKind.WORKER]
    alive = sum(1 for each in workers if each.is_alive)
    if not alive:
        return _no_worker(f"no worker has reported within {ALIVE_SECONDS:.0f} s", backlog)
    own = {"cluster": queue_of(name)} if (name := MachineSettings.now().HOST) else {}
    task_id = async_task("time.time", **own)
    began = time.monotonic()
    row = next((row for row in OrmQ.objects.order_by("-pk")[:50] if row.task_id() == task_id), None)
    try:
        while row is not None and OrmQ.objects.filter(pk=row.pk).exists():
            if time.monotonic() - began > ANSWER_SECONDS:
                seconds = f"{ANSWER_SECONDS:.0f} s"
                return _no_worker(f"no worker took a test task within {seconds}", backlog)
            time.sleep(0.02)
    finally:
        if row is not None:
            OrmQ.objects.filter(pk=row.pk).delete()
    took = (time.monotonic() - began) * 1000
    return Finding(
        "workers",
        Level.OK,
        f"{alive} seen; one took a test task in {took:.0f} ms; {backlog} tasks are waiting",
    )


def _no_worker(what: str, backlog: int) -> Finding:
    return Finding(
        "workers",
        Level.NOTE,
        f"{what}; {backlog} tasks are waiting",
        "Start them: vel up, or vel worker. `vel TASK` does not need them.",
    )


def check_model(*, online: bool) -> Finding:
    """Check that the default provider is configured; with `online`, that it answers.

    Otherwise, only opens a connection to its host.
    """
    name = default_provider()
    model = default_model(name)
    if name == "scripted":
        return Finding(
            "model",
            Level.NOTE,
            "none: the offline script answers runs",
            "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for your own server. For OpenAI or "
            "Google, also set VEL_PROVIDER=openai or google.",
        )
    try:
        provider = get_provider(name, settings_of(name))
        if online:
            return asyncio.run(_ask(provider, model))
    except ProviderError as error:
        return Finding(
            "model", Level.BROKEN, f"{name} {model}: {error.message}", _mend(name, error.code)
        )
    url = str(getattr(provider, "base_url", ""))
    if problem := unreachable(url):
        return Finding(
            "model",
            Level.NOTE,
            f"{name} {model}: {url} cannot be reached directly ({problem})",
            "This can be fine behind a proxy: test it with --online.",
        )
    if is_official(name, settings_of(name)) and not is_known(model):
        return Finding(
            "model",
            Level.NOTE,
            f"{name} {model} at {url}: this version of Vel does not know the model",
            "Check VEL_MODEL, and test it with --online.",
        )
    return Finding("model", Level.OK, f"{name} {model} at {url} (test it with --online)")


def unreachable(url: str) -> str:
    """Return why no connection to the URL's host can be made; empty if one can."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


async def _ask(provider: Provider, model: str) -> Finding:
    conversation = provider.conversation(PromptHead(model=model, system="", max_tokens=16))
    conversation.append("user", json.dumps([{"type": "text", "text": "Say ok."}]))
    began = time.monotonic()
    try:
        async for event in provider.stream(conversation):
            if isinstance(event, Reply):
                took = time.monotonic() - began
                return Finding(
                    "model",
                    Level.OK,
                    f"{provider.name} {event.model} answered in {took:.1f} s "
                    f"({event.usage.total} tokens)",
                )
    finally:
        await provider.close()
    return Finding("model", Level.BROKEN, f"{provider.name} {model}: the answer was incomplete")


def _mend(provider: str, code: str) -> str:
    key, base_url = setting_names(provider)
    return {
        "missing_key": f"Set {key}.",
        "authentication": f"Check {key}.",
        "not_found": "Check VEL_MODEL.",
        "not_installed": "Choose another VEL_PROVIDER, or install its extra.",
        "unknown_provider": "Choose another VEL_PROVIDER.",
        "connection": f"Check the network and {base_url}.",
    }.get(code, "")

"""Use every door of a served site from outside, and return its answer."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from agents.features.inbound_webhooks.signatures import sign_standard
from agents.providers.transport import tls_context
from tests.agents.consumers.conftest import Client as Socket
from tests.support.hang import HANG
from tests.support.migrated import copy_sqlite
from tests.support.site import PASSWORD, ROOT, Site
from tests.support.small_disk import MB, SmallDisk, small_disk
from tests.velproject.forked import PROGRAM, run_forked

AGENT = "echo"
USER = "olga"
SCOPES = ("read", "run", "approve", "manage")
RESERVE = 8 * MB
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Answer:
    """`status` is the HTTP status, or 0 for doors without one."""

    status: int
    text: str


@dataclass
class Served:
    """A site on a small disk with a user, an agent, a queued run and a webhook.

    `prepare` creates them, so call it before the disk is filled.
    """

    site: Site
    disk: SmallDisk
    run: str = ""
    token: str = ""
    mcp_token: str = ""
    session: str = ""
    hook: tuple[str, ...] = ()

    def prepare(self) -> None:
        do = self.site.do
        do("make_user", name=USER, password=PASSWORD, admin=True)
        do("make_agent", slug=AGENT, model="echo", mcp_tool=True)
        self.run = do("make_run", owner=USER)
        self.token = do("make_token", user=USER, scopes=SCOPES)
        self.mcp_token = do("make_token", user=USER, scopes=["mcp"])
        self.session = do("sign_in", user=USER)
        self.hook = tuple(do("make_signed_inbound_webhook", owner=USER, agent=AGENT))
        self.site.start_server()

    def api(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Token {self.token}"}
        url = f"{self.site.url}/api/v1{path}"
        return httpx2.request(
            method, url, headers=headers, verify=tls_context(), timeout=HANG, **more
        )

    def page(self, path: str, signed_in: bool = True, **fields: str) -> httpx2.Response:
        """GET the page, or with `fields` POST a form to it. Redirects are followed."""
        cookies = {"sessionid": self.session} if signed_in else {}
        with httpx2.Client(
            base_url=self.site.url, cookies=cookies, verify=tls_context(), timeout=HANG
        ) as client:
            if not fields:
                return client.get(path, follow_redirects=True)
            client.get("/login/" if not signed_in else "/", follow_redirects=True)
            fields["csrfmiddlewaretoken"] = client.cookies["csrftoken"]
            return client.post(path, data=fields, follow_redirects=True)

    def program(self, *arguments: str, **environment: str) -> Answer:
        """Run `vel` with the site's data directory and database; it must fail."""
        done = run_forked(
            arguments,
            stdin="",
            environment={**self.site.environment, **environment},
            cwd=ROOT,
            timeout=HANG,
            namespaces_of=self.disk.holder,
        )
        assert done.returncode == 1, done
        return Answer(0, done.stdout + done.stderr)


@contextmanager
def served_on_a_small_disk(directory: Path, reserve: int) -> Iterator[Served]:
    """Serve a site on a disk of 40 MB. `reserve` is the setting, in bytes."""
    with small_disk(directory / "small", 40 * MB) as disk:
        copy_sqlite(directory / "migrated.sqlite3")
        (disk.seen / "site.sqlite3").write_bytes((directory / "migrated.sqlite3").read_bytes())
        site = Site(disk.place, namespaces_of=disk.holder)
        site.environment |= {"VEL_RESERVE_BYTES": str(reserve), "HOME": str(directory)}
        try:
            served = Served(site, disk)
            served.prepare()
            yield served
        finally:
            site.close()


def _answer(response: httpx2.Response) -> Answer:
    return Answer(response.status_code, response.text)


def rest(served: Served) -> Answer:
    return _answer(served.api("POST", "/runs", json={"agent": AGENT, "message": "Hello"}))


def upload(served: Served) -> Answer:
    files = {"file": ("notes.txt", b"word " * 100, "text/plain")}
    form = {"agent": AGENT, "message": "Hello"}
    return _answer(served.api("POST", "/runs", data=form, files=files))


def chat(served: Served) -> Answer:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
    body = {"id": secrets.token_hex(8), "messages": [message], "trigger": "submit-message"}
    return _answer(served.api("POST", f"/agents/{AGENT}/chat", json=body))


def fork(served: Served) -> Answer:
    return _answer(served.api("POST", f"/runs/{served.run}/fork", json={"message": "Again"}))


def first_page(served: Served) -> Answer:
    return _answer(served.page("/", agent=AGENT, message="Hello"))


def run_page(served: Served) -> Answer:
    return _answer(served.page(f"/runs/{served.run}/messages/", message="And then?"))


def admin(served: Served) -> Answer:
    listing = served.page("/admin/agents/agent/").text
    found = re.search(rf"/admin/agents/agent/([0-9a-z]+)/change/[^>]*>{AGENT}<", listing)
    assert found is not None
    return _answer(served.page(f"/admin/agents/agent/{found[1]}/try/", message="Hello"))


def socket(served: Served) -> Answer:
    with ExitStack() as closing:
        client = Socket(closing, served.site, served.run, session=served.session)
        return Answer(0, json.dumps(client.ask("message", text="And then?")))


def mcp(served: Served) -> Answer:
    call = {"name": AGENT, "arguments": {"message": "Hello", "wait_seconds": 0}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {**_MCP, "Authorization": f"Bearer {served.mcp_token}"}
    url = f"{served.site.url}/mcp"
    answer = httpx2.post(url, json=message, headers=headers, verify=tls_context(), timeout=HANG)
    return Answer(0, answer.text)


def webhook(served: Served) -> Answer:
    pk, secret = served.hook
    body, name, now = b'{"a": 1}', secrets.token_hex(8), int(time.time())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_standard(secret, name, now, body),
    }
    url = f"{served.site.url}/hooks/{pk}"
    answer = httpx2.post(url, content=body, headers=headers, verify=tls_context(), timeout=HANG)
    return _answer(answer)


def command_line(served: Served) -> Answer:
    return served.program("--no-sandbox", "Hello")


def python(served: Served) -> Answer:
    return served.program(**{PROGRAM: "tests.velproject.full_disk_program"})


STARTING: tuple[Callable[[Served], Answer], ...] = (
    rest,
    upload,
    chat,
    fork,
    first_page,
    run_page,
    admin,
    socket,
    mcp,
    webhook,
    command_line,
    python,
)
"""Doors that start a run or send a message."""


def cancel(served: Served) -> Answer:
    return _answer(served.api("POST", f"/runs/{served.run}/cancel", json={}))


def erase(served: Served) -> Answer:
    thread = served.api("GET", f"/runs/{served.run}").json()["thread"]
    return _answer(served.api("DELETE", f"/threads/{thread}"))


def sign_in(served: Served) -> Answer:
    return _answer(served.page("/login/", False, username=USER, password=PASSWORD))

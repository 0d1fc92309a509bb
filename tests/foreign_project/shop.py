"""The running project: commands, one server and one cluster, each a separate process."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from tests.support.hang import HANG

HERE = Path(__file__).parent
PASSWORD = "a-long-enough-password"

SEED = f"""
import django; django.setup()
from django.core.management import call_command
call_command("migrate", database="default", verbosity=0, skip_checks=False)
call_command("migrate", "library", database="stock", verbosity=0, skip_checks=False)
from django.contrib.auth.models import Permission
from library.models import Book, Copies, Reader
see = Permission.objects.get(content_type__app_label="library", codename="view_book")
Reader.objects.create_superuser("boss@shop.np", {PASSWORD!r})
for name in ("ada", "bob", "carl", "dora", "erna"):
    reader = Reader.objects.create_user(name + "@shop.np", {PASSWORD!r})
    for title in ("First of " + name, "Second of " + name):
        Book.objects.create(title=title, owner=reader)
    if name != "carl":
        reader.user_permissions.add(see)
Copies.objects.create(title="First", number=3)
print("seeded")
call_command("check", deploy=True)
call_command("makemigrations", check=True)
"""
"""Prepares the databases. Then it checks the settings, and that no migration is missing."""


class Shop:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **os.environ,
            "BOOKSHOP_DATA": str(directory),
            "DJANGO_SETTINGS_MODULE": "bookshop.settings",
            "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parents[1]}",
        }
        self.port = 0

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            env=self.environment,
            cwd=HERE,
            text=True,
            capture_output=True,
            timeout=HANG,
        )

    @contextmanager
    def open(self) -> Iterator[None]:
        """Run Daphne and `manage.py qcluster`."""
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            self.port = listening.getsockname()[1]
            number = listening.fileno()
            daphne = ["-m", "daphne", "-e", f"fd:fileno={number}", "bookshop.asgi:application"]
            with (self.directory / "log").open("wb") as log:
                run = {"env": self.environment, "cwd": HERE, "stdout": log, "stderr": log}
                server = subprocess.Popen([sys.executable, *daphne], pass_fds=[number], **run)
                queue = [sys.executable, "manage.py", "qcluster"]
                cluster = subprocess.Popen(queue, start_new_session=True, **run)
        try:
            yield
        finally:
            cluster.terminate()
            server.kill()
            server.wait()
            cluster.wait(timeout=HANG)

    def change(self, statement: str, *values: Any) -> None:
        """Change the project's database while it runs."""
        with closing(sqlite3.connect(self.directory / "shop.sqlite3", timeout=20)) as database:
            database.execute(statement, values)
            database.commit()

    def script(self, name: str, *turns: Any) -> str:
        """Write a script for the offline model and return its path."""
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps({"turns": turns}))
        return str(path)


class Visitor:
    """A person with a browser, or a program with a token."""

    def __init__(self, shop: Shop, token: str = "") -> None:
        self.shop, self.token = shop, token
        self.jar = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self.jar))

    def ask(
        self, path: str, body: Any = None, *, form: bool = False, **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        """Send a request. Return (status, body, headers)."""
        if self.token:
            headers["Authorization"] = f"Token {self.token}"
        data = None
        if body is not None:
            data = (urlencode(body) if form else json.dumps(body)).encode()
            headers["Content-Type"] = "application/" + ("x-www-form-urlencoded" if form else "json")
        url = f"http://127.0.0.1:{self.shop.port}{path}"
        try:
            with self._opener.open(Request(url, data, headers), timeout=HANG) as answer:
                found = answer.status, answer.read(), dict(answer.headers), answer.url
        except HTTPError as error:
            found = error.code, error.read(), dict(error.headers), url
        return found[0], found[1].decode(), {**found[2], "url": found[3]}

    def api(self, path: str, body: Any = None, **headers: str) -> Any:
        """Return the response of the API. It must be a success."""
        status, text, _ = self.ask(f"/vel/api/{path}", body, **headers)
        assert status in (200, 201), (status, text)
        return json.loads(text)

    def sign_in(self, name: str) -> Visitor:
        """Sign in on the project's own page."""
        _, page, _ = self.ask("/members/sign-in/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token is not None, page
        fields = {"username": f"{name}@shop.np", "password": PASSWORD}
        _, _, headers = self.ask(
            "/members/sign-in/", {**fields, "csrfmiddlewaretoken": token[1]}, form=True
        )
        assert headers["url"].endswith("/books/"), headers
        return self

    @property
    def csrf(self) -> str:
        return next(cookie.value or "" for cookie in self.jar if cookie.name == "bookshop_csrf")

    def program(self, *scopes: str) -> Visitor:
        """Create a token with these scopes and return a program that uses it."""
        body = {"name": "test", "scopes": scopes, "days": 1}
        made = self.api("tokens", body, **{"X-Bookshop-Csrf": self.csrf})
        return Visitor(self.shop, made["secret"])

    def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        """Repeat the request until `holds` accepts the response, and return that response."""
        end = time.monotonic() + HANG
        while True:
            found = self.api(path)
            if holds(found):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.05)

    def ended(self, run: str) -> Any:
        return self.until(f"runs/{run}", lambda found: found["ended_at"] is not None)

    def request_of(self, run: str) -> Any:
        """Return the pending request of a run."""
        path = f"approvals?status=pending&run={run}"
        return self.until(path, lambda found: bool(found["results"]))["results"][0]

    def calls(self, run: str) -> dict[str, Any]:
        """Return the calls of a run by tool."""
        return {call["tool"]: call for call in self.api(f"runs/{run}/tool-calls")["results"]}

"""Use a copy of the project from which features were removed. Run in the copy by `test_removal`.

Check it, migrate an empty database, complete a run, and send requests to its web server. Print one
line for each request, and exit with 1 if something fails.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import threading
import traceback
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

FORM = "multipart/form-data; boundary=xx"
UPLOAD = (
    '--xx\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
    "Content-Type: text/plain\r\n\r\nhello\r\n--xx--\r\n"
)
failed: list[str] = []


class Client:
    """Sends requests to the web server, and remembers those that failed in it."""

    def __init__(self, port: int, session: str, token: str) -> None:
        self._server = http.client.HTTPConnection("localhost", port, timeout=60)
        self._session = {"Cookie": f"sessionid={session}"}
        self._token = {"Authorization": f"Token {token}"}

    def page(self, path: str) -> None:
        """Get a page, which may send to another one, or refuse without failing."""
        self._send("GET", path, None, self._session)

    def rest(self, path: str) -> None:
        self._send("GET", path, None, self._token, HTTPStatus.OK)

    def create(self, path: str, body: str, media_type: str) -> dict[str, str]:
        """Post to the REST API. Return the new object."""
        headers = {**self._token, "Content-Type": media_type}
        made: dict[str, str] = json.loads(
            self._send("POST", path, body, headers, HTTPStatus.CREATED)
        )
        return made

    def _send(
        self,
        method: str,
        path: str,
        body: str | None,
        headers: dict[str, str],
        expected: HTTPStatus | None = None,
    ) -> bytes:
        self._server.request(method, path, body, headers)
        answer = self._server.getresponse()
        content = answer.read()
        print(f"{answer.status} {method} {path}")
        error = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if error or (expected is not None and answer.status != expected):
            failed.append(f"{method} {path}: {answer.status}: {content[:500]!r}")
        return content


def prepare_database() -> None:
    import_module("django").setup()
    call_command = import_module("django.core.management").call_command
    call_command("check", fail_level="ERROR")
    call_command("makemigrations", check=True, dry_run=True)
    call_command("migrate", verbosity=0)


def complete_run() -> None:
    """Give a task to an agent in the terminal."""
    task = ["--provider", "scripted", "--model", "demo", "--no-sandbox", "Say hello"]
    try:
        import_module("velproject.cli.main").main(task)
    except SystemExit as end:
        if end.code:
            failed.append(f"vel exited with {end.code}")


def serve_requests() -> None:
    """Run the web server as `vel up` does, send requests to it, and stop it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = signed_in_client(listening.getsockname()[1])
        sender = threading.Thread(target=send_requests_and_stop, args=(client,))
        sender.start()
        import_module("velproject.child").run_web(listening.fileno())
        sender.join()


def signed_in_client(port: int) -> Client:
    models = import_module("agents.models")
    user = import_module("django.contrib.auth").get_user_model()(username="ann")
    user.is_staff = user.is_superuser = True
    user.set_unusable_password()
    user.save()
    _, token = import_module("agents.services.tokens").create_token(user)
    browser = import_module("django.test").Client()
    browser.force_login(user)
    models.Agent.objects.create(slug="ada", name="Ada", provider="scripted", model="demo")
    return Client(port, browser.cookies["sessionid"].value, token)


def send_requests_and_stop(client: Client) -> None:
    try:
        send_requests(client)
    except Exception:  # noqa: BLE001  # a thread: the process exits with 1
        failed.append(traceback.format_exc())
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def send_requests(client: Client) -> None:
    client.page("/healthz")
    client.page("/login/")
    client.rest("/api/v1/schema")
    form = json.dumps({"agent": "ada", "message": "Say hello"})
    run = client.create("/api/v1/runs", form, "application/json")
    client.create(f"/api/v1/threads/{run['thread']}/uploads", UPLOAD, FORM)
    for path in pages({"slug": "ada", "run_id": run["id"]}):
        client.page(path)
    agent = import_module("agents.models").Agent.objects.get(slug="ada").pk
    for path in ("", "agents/agent/", "agents/agent/add/", f"agents/agent/{agent}/change/"):
        client.page(f"/admin/{path}")


def pages(arguments: dict[str, str]) -> list[str]:
    """Return the paths of all pages that need at most these arguments."""
    patterns = import_module("agents.web.urls").urlpatterns
    reverse = import_module("django.urls").reverse
    return [
        reverse(f"web:{pattern.name}", kwargs={name: arguments[name] for name in names})
        for pattern in patterns
        if (names := pattern.pattern.converters).keys() <= arguments.keys()
    ]


if __name__ == "__main__":
    # An editable installation would find the original, too.
    sys.path[:] = [path for path in sys.path if not Path(path, "manage.py").is_file()]
    sys.path.insert(0, os.getcwd())
    assert not any(map(find_spec, os.environ["REMOVED"].split()))
    prepare_database()
    complete_run()
    serve_requests()
    if failed:
        sys.exit("\n".join(failed))

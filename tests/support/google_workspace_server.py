"""A loopback server of Google's: the token endpoint, Gmail v1 and Calendar v3, as Vel uses them.

It refuses the same requests as Google: wrong scopes, bad signatures, bad base64url, missing fields,
unknown parameters, stale etags.

    with google_server() as google:
        settings.VEL = {…, **google.settings}
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.google_calendars import CalendarApi
from tests.support.google_mailbox import GmailApi
from tests.support.google_wire import Refused, unpadded

AUTH = "https://www.googleapis.com/auth/"
CLIENT = {"client_id": "1234.apps.googleusercontent.com", "client_secret": "GOCSPX-client-s3cret"}
REFRESH = "1//0g-refresh-t0ken-of-ada"
EVERYTHING = f"{AUTH}gmail.modify {AUTH}calendar.readonly {AUTH}calendar.events"
SERVICE_ACCOUNT = "vel@project.iam.gserviceaccount.com"


@lru_cache(maxsize=1)
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def service_account_key(**fields: str) -> str:
    """Return the JSON file of a service account in Google Cloud's format."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "project",
            "private_key_id": "key-1",
            "private_key": pem(private_key()),
            "client_email": SERVICE_ACCOUNT,
            "client_id": "987",
            "token_uri": "https://oauth2.googleapis.com/token",
            **fields,
        }
    )


def authorized_user(**fields: str) -> str:
    return json.dumps({"type": "authorized_user", **CLIENT, "refresh_token": REFRESH, **fields})


class GoogleServer:
    """The state of the server, the requests that it received, and its faults."""

    def __init__(self, port: int) -> None:
        root = f"http://127.0.0.1:{port}"
        self.settings = {
            "GMAIL_URL": f"{root}/",
            "CALENDAR_URL": f"{root}/calendar/v3/",
            "GOOGLE_TOKEN_URL": f"{root}/token",
            "GOOGLE_AUTH_URL": f"{root}/auth",
        }
        self.grants = {REFRESH: ("ada@example.com", EVERYTHING)}
        """The person and the granted scopes by refresh token."""
        self.delegated = {("ada@example.com", scope) for scope in EVERYTHING.split()}
        """The people and scopes that an administrator has delegated to the service account."""
        self.mailboxes = {"ada@example.com": GmailApi("ada@example.com")}
        self.calendars = {"ada@example.com": CalendarApi("ada@example.com")}
        self.tokens: dict[str, tuple[str, str, float]] = {}
        self.token_seconds = 3600
        self.asked: list[tuple[str, str]] = []
        self.tokens_made = 0
        self.codes: dict[str, tuple[str, dict[str, str]]] = {}
        self.faults: dict[tuple[str, str], list[Any]] = {}
        """Lists of faults by (method, end of the path), one fault for each request.

        A fault is a status instead of the work, ("after", status), "cut" after the work, "revoke"
        the token, or None for no fault.
        """
        self.before: Callable[[str, str], None] = lambda method, path: None

    @property
    def mail(self) -> GmailApi:
        return self.mailboxes["ada@example.com"]

    @property
    def calendar(self) -> CalendarApi:
        return self.calendars["ada@example.com"]

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        kind = form.get("grant_type")
        if kind == "refresh_token":
            if any(form.get(name) != value for name, value in CLIENT.items()):
                raise Refused(401, {"error": "invalid_client", "error_description": "Unauthorized"})
            grant = self.grants.get(form.get("refresh_token", ""))
            if grant is None:
                raise _grant("Token has been expired or revoked.")
            return {**self._made(*grant), "scope": grant[1]}
        if kind == "authorization_code":
            return self._exchanged(form)
        if kind == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return self._made(*self._asserted(form.get("assertion", "")))
        raise Refused(400, {"error": "unsupported_grant_type"})

    def consent(self, address: str, person: str = "ada@example.com") -> str:
        """Give consent at `address` and return the code."""
        asked = {name: one[0] for name, one in parse_qs(urlsplit(address).query).items()}
        wanted = {"response_type": "code", "code_challenge_method": "S256", "prompt": "consent"}
        assert wanted.items() <= asked.items()
        assert asked["client_id"] == CLIENT["client_id"]
        code = f"4/{secrets.token_urlsafe(16)}"
        self.codes[code] = (person, asked)
        return code

    def _exchanged(self, form: dict[str, str]) -> dict[str, Any]:
        person, asked = self.codes.pop(form.get("code", ""), ("", {}))
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        shown = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if any(form.get(name) != value for name, value in CLIENT.items()):
            raise Refused(401, {"error": "invalid_client"})
        if not asked or asked["code_challenge"] != shown:
            raise _grant("Malformed auth code.")
        if asked["redirect_uri"] != form.get("redirect_uri"):
            raise Refused(400, {"error": "redirect_uri_mismatch"})
        refresh = f"1//0g-{secrets.token_urlsafe(16)}"
        self.grants[refresh] = (person, asked["scope"])
        offline = {"refresh_token": refresh} if asked.get("access_type") == "offline" else {}
        return {**self._made(person, asked["scope"]), "scope": asked["scope"], **offline}

    def _made(self, person: str, scope: str) -> dict[str, Any]:
        text = f"ya29.{secrets.token_urlsafe(24)}"
        self.tokens[text] = (person, scope, time.monotonic() + self.token_seconds)
        self.tokens_made += 1
        return {"access_token": text, "expires_in": self.token_seconds, "token_type": "Bearer"}

    def _asserted(self, assertion: str) -> tuple[str, str]:
        try:
            head, claims, signature = assertion.split(".")
            header, said = json.loads(unpadded(head)), json.loads(unpadded(claims))
            private_key().public_key().verify(
                unpadded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), SHA256()
            )
        except (ValueError, InvalidSignature):
            raise _grant("Invalid JWT Signature.") from None
        now = time.time()
        if (header.get("alg"), header.get("kid"), said.get("iss")) != (
            "RS256",
            "key-1",
            SERVICE_ACCOUNT,
        ):
            raise _grant("Invalid issuer or key.")
        if said.get("aud") != "https://oauth2.googleapis.com/token":
            raise _grant("Invalid JWT: audience.")
        if not now - 300 < said["iat"] < now + 60 or not 0 < said["exp"] - said["iat"] <= 3600:
            raise _grant("Invalid JWT: Token must be a short-lived token (60 minutes).")
        scopes = str(said.get("scope", "")).split()
        if not scopes:
            raise Refused(400, {"error": "invalid_scope"})
        if any((said.get("sub"), scope) not in self.delegated for scope in scopes):
            raise Refused(401, {"error": "unauthorized_client"})
        return str(said["sub"]), " ".join(scopes)

    def answer(
        self, method: str, path: str, query: dict[str, list[str]], head: Any, body: bytes
    ) -> tuple[int, Any]:
        """Answer a request. Raises `Refused` for an invalid one."""
        if path == "/token":
            if head["Content-Type"] != "application/x-www-form-urlencoded":
                raise Refused(400, {"error": "invalid_request"})
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            return 200, self.token(form)
        text = head.get("Authorization", "").removeprefix("Bearer ")
        person, scope, ends = self.tokens.get(text, ("", "", 0.0))
        if ends < time.monotonic():
            raise Refused.of(401, "Request had invalid authentication credentials.", "authError")
        scopes = {one.removeprefix(AUTH) for one in scope.split()}
        parts = [unquote(part) for part in path.strip("/").split("/")]
        upload = parts[0] == "upload"
        parts = parts[1:] if upload else parts
        if parts[:4] == ["gmail", "v1", "users", "me"]:
            api: Any = self.mailboxes[person]
            given = api.uploaded(head["Content-Type"], body) if upload else _json(head, body)
            return api.answer(method, parts[4:], query, given, scopes)
        if parts[:2] == ["calendar", "v3"]:
            given = _json(head, body)
            return self.calendars[person].answer(
                method, parts[2:], query, given, scopes, head.get("If-Match")
            )
        raise Refused.of(404, "Not Found", "notFound")

    def fault(self, method: str, path: str) -> Any:
        for (wanted, end), left in self.faults.items():
            if wanted == method and path.endswith(end) and left:
                return left.pop(0)
        return None


def _grant(text: str) -> Refused:
    return Refused(400, {"error": "invalid_grant", "error_description": text})


def _json(head: Any, body: bytes) -> Any:
    if not body:
        return {}
    if head["Content-Type"] != "application/json":
        raise Refused.of(400, "Content type", "badRequest")
    return json.loads(body)


@contextmanager
def google_server() -> Iterator[GoogleServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            url = urlsplit(self.path)
            google.asked.append((self.command, self.path))
            google.before(self.command, url.path)
            fault = google.fault(self.command, url.path)
            more: dict[str, str] = {}
            if fault == "revoke":
                google.tokens.clear()
            try:
                if isinstance(fault, dict):
                    more = fault["headers"]
                    raise Refused.of(fault["status"], "Slow down.", fault.get("reason", ""))
                if isinstance(fault, int):
                    raise Refused.of(fault, "A fault.", "backendError")
                status, said = google.answer(
                    self.command,
                    url.path,
                    parse_qs(url.query, strict_parsing=bool(url.query)),
                    self.headers,
                    body,
                )
                if isinstance(fault, tuple):
                    status, said = fault[1], {}
            except Refused as refused:
                status, said = refused.status, refused.body
            if fault == "cut":
                self.close_connection = True
                return
            content = b"" if said is None else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(content)))
            for name, value in more.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PATCH = do_DELETE = do_POST

        def log_message(self, *arguments: Any) -> None:
            """Log no requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    google = GoogleServer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield google
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

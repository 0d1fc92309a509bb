"""Outgoing webhooks: the content, the signature, and the forbidden addresses."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from agents.features.notifications.actions import save_target
from agents.features.notifications.delivery import deliver_next
from agents.features.notifications.models import Notification
from agents.features.notifications.webhook import (
    DeliveryFailed,
    new_secret,
    parse_webhook_url,
    post,
    signature,
    tls_context,
)
from agents.services.errors import InvalidRequest
from agents.services.outside_address import PrivateHosts
from sandbox.linux.egress.dialling import PublicInternet
from tests.agents.features.notifications.waiting import asked, hooked, private, webhook
from tests.sandbox.linux.egress.world import Names, plain_server
from tests.support.hang import HANG
from tests.support.receivers import receiver

PUBLIC = "https://hooks.example.org/vel"
database = pytest.mark.django_db(transaction=True)


# The message ----------------------------------------------------------------------------------


@database
def test_the_reference_implementation_accepts_the_signature_and_no_other_body() -> None:
    with receiver() as hook, hooked(hook) as target:
        asked()
        assert deliver_next(target.id)
    [got] = hook.received
    wanted = Webhook(target.secret)
    assert wanted.verify(got.body, got.headers) == got.json
    with pytest.raises(WebhookVerificationError):
        wanted.verify(got.body.replace(b"write_file", b"read_filex"), got.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        wanted.verify(got.body, {**got.headers, "webhook-id": "another"})


def test_the_signature_of_the_published_example() -> None:
    body = b'{"test": 2432232314}'
    assert (
        signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            body,
        )
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@database
def test_it_names_the_request_without_the_content_of_the_call() -> None:
    with receiver() as hook, hooked(hook) as target:
        [request] = asked()
        request.input = {"path": "/secret-path", "content": "hunter2"}
        request.prompt = "Look\u202e twice."
        request.save()
        assert deliver_next(target.id)
    [got] = hook.received
    assert b"hunter2" not in got.body
    assert b"secret-path" not in got.body
    row = Notification.objects.get()
    assert got.path == "/hook"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["host"] == hook.host
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60
    assert got.json == {
        "id": row.id,
        "type": "approval.requested",
        "request": {
            "id": request.id,
            "kind": "tool",
            "tool": "write_file",
            "agent": "tester",
            "run": request.run_id,
            "prompt": "Look⟨U+202E⟩ twice.",
            "created_at": request.created_at.isoformat(),
            "expires_at": None,
            "url": f"http://127.0.0.1:8000/approvals/{request.id}/",
        },
    }


# Receivers that do not behave ------------------------------------------------------------------


@pytest.mark.slow_cases
@database
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(status: int) -> None:
    with receiver() as other, receiver([status]) as hook, hooked(hook) as target:
        hook.location = other.url
        asked()
        with private(hook.host, other.host):
            assert not deliver_next(target.id)
    assert other.received == []
    assert Notification.objects.get().error == (f"it answered {status}; redirects are not followed")


def test_a_huge_answer_is_not_read() -> None:
    with receiver() as hook, private(hook.host):
        hook.body = b"x" * 50_000_000
        assert post(parse_webhook_url(hook.url), new_secret(), "m", b"{}") == 200
        assert hook.left.wait(HANG)


def talk(*pieces: bytes, pause: float = 0.0):
    def serve(peer: socket.socket) -> None:
        peer.recv(65536)
        for piece in pieces:
            try:
                peer.sendall(piece)
            except OSError:
                return
            time.sleep(pause)

    return serve


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([b"HTTP/1.1 99 No\r\n\r\n"], "HTTP/1.1"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "HTTP/1.1"),
        ([b"HTTP/1.1 200 " + b"x" * 5000], "malformed"),
        ([b"\x00" * 100_000], "malformed"),
        ([b""], "without an answer"),
        ([b"HTTP/1.1 100 Continue\r\n" + b"a: b\r\n" * 500], "begin"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" * 500], "begin"),
        ([b"HTTP/1.1 204 a\r\n"], ""),
        ([b"HTTP/1.1 100 Continue\r\na: b\r\n\r\nHTTP/1.1 201 Created\r\n\r\n"], ""),
    ],
)
def test_answers_of_all_kinds(pieces: list[bytes], why: str) -> None:
    with plain_server(talk(*pieces)) as port, private(f"127.0.0.1:{port}"):
        address = parse_webhook_url(f"http://127.0.0.1:{port}/")
        if not why:
            assert post(address, new_secret(), "m", b"{}") in (201, 204)
            return
        with pytest.raises(DeliveryFailed, match=why) as failed:
            post(address, new_secret(), "m", b"{}")
    assert "OpenSSH" not in str(failed.value), "readers of errors must not see answers of services"


def test_a_receiver_that_drips_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.features.notifications.webhook.SECONDS", 0.5)
    drops = talk(*[b"x"] * 1000, pause=0.05)
    with plain_server(drops) as port, private(f"127.0.0.1:{port}"):
        begin = time.monotonic()
        with pytest.raises(DeliveryFailed, match=r"no answer within 0\.5 s"):
            post(parse_webhook_url(f"http://127.0.0.1:{port}/"), new_secret(), "m", b"{}")
        assert time.monotonic() - begin < 20  # instead of 50


def test_a_missing_receiver_is_a_failure() -> None:
    with plain_server(talk()) as port:
        pass
    with private(f"127.0.0.1:{port}"), pytest.raises(DeliveryFailed, match="no connection"):
        post(parse_webhook_url(f"http://127.0.0.1:{port}/"), new_secret(), "m", b"{}")


# TLS -------------------------------------------------------------------------------------------


def certificate(directory: Path, *names: x509.GeneralName) -> tuple[ssl.SSLContext, Path]:
    """Return a server's TLS context for these names, and its certificate file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, secret = directory / "cert.pem", directory / "key.pem"
    shown.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown, secret)
    return context, shown


@pytest.fixture
def fresh_context() -> Iterator[None]:
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()


LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))


@pytest.mark.usefixtures("fresh_context")
def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    context, _ = certificate(tmp_path, LOOPBACK)
    with receiver(tls=context) as hook, private(hook.host):
        with pytest.raises(DeliveryFailed, match="certificate is refused: self-signed"):
            post(parse_webhook_url(hook.url), new_secret(), "m", b"{}")
        assert hook.received == []


@pytest.mark.usefixtures("fresh_context")
def test_the_certificate_must_be_for_the_name_of_the_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, shown = certificate(tmp_path, x509.DNSName("hooks.example.org"))
    monkeypatch.setenv("SSL_CERT_FILE", str(shown))
    with receiver(tls=context) as hook, private(hook.host):
        address = parse_webhook_url(hook.url)
        with pytest.raises(DeliveryFailed, match=r"certificate is refused: .*mismatch"):
            post(address, new_secret(), "m", b"{}")
        # TLS verifies the name of the URL, for any address.
        named = parse_webhook_url(f"https://hooks.example.org:{hook.port}/hook")
        here = replace(named, world=ToLoopback())
        assert post(here, new_secret(), "m", b"{}") == 200
        assert hook.received[0].headers["host"] == f"hooks.example.org:{hook.port}"


class ToLoopback(PrivateHosts):
    def resolve(self, name: str):
        return [ip_address("127.0.0.1")]


# Where it may not go ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://127.0.0.1:8000/admin/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://[fd00::1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://168.63.129.16/",
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.0.1./",
        "https://localhost/",
        "https://localhost./",
        "https://intranet/",
        "https://hooks.example.org./",
        "http://hooks.example.org/",
        "http://127.0.0.1/",
        "https://ada@hooks.example.org/",
        "https://hooks.example.org@127.0.0.1/",
        "https://127.0.0.1#@hooks.example.org/",
        "https://127.0.0.1\\@hooks.example.org/",
        "https://hooks.example.org/#fragment",
        "https://hooks.example.org/a b",
        "https://hooks.example.org/\r\nX-Injected: 1",
        "https://hooks.example.org/\n",
        "https://hooks.example.org:0/",
        "https://hooks.example.org:70000/",
        "https://hooks.example.org:/",
        "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        "https://hooks。example。org/",
        "https:///etc/passwd",
        "https:hooks.example.org",
        "ftp://hooks.example.org/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "",
        f"https://hooks.example.org/{'a' * 500}",
    ],
)
def test_urls_that_are_refused_when_they_are_saved(url: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_webhook_url(url)


@pytest.mark.parametrize(
    ("url", "path", "port"),
    [
        ("https://hooks.example.org", "/", 443),
        ("https://hooks.example.org?a=b", "/?a=b", 443),
        ("https://Hooks.Example.org:8443/a?b=%20", "/a?b=%20", 8443),
        ("https://1.1.1.1/x", "/x", 443),
    ],
)
def test_urls_of_public_hosts(url: str, path: str, port: int) -> None:
    address = parse_webhook_url(url)
    assert (address.path, address.endpoint.port, address.tls) == (path, port, True)
    assert isinstance(address.world, PublicInternet)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1", "0.0.0.0"],
)
def test_a_name_that_leads_to_an_address_that_is_not_public_is_refused(address: str) -> None:
    with plain_server(talk(b"HTTP/1.1 200 OK\r\n\r\n")) as port:
        named = parse_webhook_url(f"https://hooks.example.org:{port}/")
        with pytest.raises(DeliveryFailed, match="not sent: its address is not public"):
            post(replace(named, world=Names([address])), new_secret(), "m", b"{}")


def test_one_address_of_several_that_is_not_public_refuses_them_all() -> None:
    named = replace(parse_webhook_url(PUBLIC), world=Names(["1.1.1.1", "127.0.0.1"]))
    with pytest.raises(DeliveryFailed, match="not public"):
        post(named, new_secret(), "m", b"{}")


def test_a_name_is_resolved_once_against_rebinding() -> None:
    world = Names(["127.0.0.1"], ["1.1.1.1"])
    with pytest.raises(DeliveryFailed, match="not public"):
        post(replace(parse_webhook_url(PUBLIC), world=world), new_secret(), "m", b"{}")
    assert world.asked == ["hooks.example.org"]


@database
def test_a_target_that_is_no_longer_allowed_is_refused() -> None:
    with receiver() as hook:
        with hooked(hook) as target:
            asked()
        assert not deliver_next(target.id)
        assert hook.received == []
    assert "not public" in Notification.objects.get().error


@pytest.mark.parametrize(
    ("listed", "url", "allowed"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000/", True),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/", True),
        ("127.0.0.1:9000", "http://127.0.0.1:9001/", False),
        ("127.0.0.1:9000", "http://127.0.0.1/", False),
        ("127.0.0.1:443", "https://127.0.0.1/", True),
        ("[::1]:9000", "http://[::1]:9000/", True),
        ("Hooks:9000", "http://hooks:9000/", True),
        ("hooks", "http://hooks.evil.example/", False),
        ("hooks", "http://hooks@evil/", False),
        ("127.0.0.1", "http://127.0.0.1./", False),
        ("127.0.0.1", "http://2130706433/", False),
        ("localhost", "http://localhost./", False),
    ],
)
def test_exceptions_apply_only_to_listed_addresses(listed: str, url: str, allowed: bool) -> None:
    with private(listed):
        if allowed:
            assert isinstance(parse_webhook_url(url).world, PrivateHosts)
        else:
            with pytest.raises(InvalidRequest):
                parse_webhook_url(url)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "224.0.0.1", "0.0.0.0"]
)
def test_a_listed_name_that_turns_to_the_cloud_s_metadata_is_refused(address: str) -> None:
    assert PrivateHosts().refusal(ip_address(address)) is not None


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "100.64.0.1", "fd00::1", "1.1.1.1"])
def test_a_listed_name_may_lead_into_the_own_network(address: str) -> None:
    assert PrivateHosts().refusal(ip_address(address)) is None


@database
def test_another_url_gets_another_secret() -> None:
    target = webhook(PUBLIC)
    first = target.secret
    target.is_active = False
    assert (save_target(target), target.secret) == (None, first)
    target.address = "https://other.example.org/"
    made = save_target(target)
    assert made not in (None, first)

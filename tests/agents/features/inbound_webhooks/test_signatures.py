"""Signatures of requests: the supported headers, and forgeries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from agents.features.inbound_webhooks.signatures import (
    TOLERANCE,
    is_genuine,
    key_of,
    new_secret,
    read_signed,
    sign_standard,
)

NOW = 1_795_000_000
BODY = b'{"a": 1}'
OTHERS = ("github", "slack", "stripe")


def headers_of(signing: str, secret: str, body: bytes = BODY, at: int = NOW) -> dict[str, str]:
    """Return headers that follow the sender's own rules."""

    def hexed(content: bytes) -> str:
        return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()

    if signing == "standard":
        made = Webhook(secret).sign("msg_1", datetime.fromtimestamp(at, UTC), body.decode())
        return {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": made}
    if signing == "github":
        return {"x-hub-signature-256": f"sha256={hexed(body)}"}
    if signing == "slack":
        made = hexed(f"v0:{at}:".encode() + body)
        return {"x-slack-request-timestamp": str(at), "x-slack-signature": f"v0={made}"}
    return {"stripe-signature": f"t={at},v1={hexed(f'{at}.'.encode() + body)},v0=00"}


def genuine(signing: str, headers: dict[str, str], *secrets: str, body: bytes = BODY) -> bool:
    keys = [key_of(signing, secret) for secret in secrets]
    return is_genuine(read_signed(signing, headers, body), body, keys, NOW)


@pytest.mark.parametrize("signing", ["standard", *OTHERS])
def test_each_spelling(signing: str):
    secret, other = new_secret(), new_secret()
    headers = headers_of(signing, secret)

    assert genuine(signing, headers, secret)
    assert genuine(signing, headers, other, secret)
    assert not genuine(signing, headers, other)
    assert not genuine(signing, headers)
    assert not genuine(signing, {}, secret)
    for place in range(len(BODY)):
        changed = bytearray(BODY)
        changed[place] ^= 1
        assert not genuine(signing, headers, secret, body=bytes(changed))
    assert not genuine(signing, headers, secret, body=BODY + b" ")


@pytest.mark.parametrize("signing", ["standard", "slack", "stripe"])
@pytest.mark.parametrize(
    ("moved", "good"),
    [
        (TOLERANCE, True),
        (-TOLERANCE, True),
        (TOLERANCE + 1, False),
        (-TOLERANCE - 1, False),
        (-NOW, False),
    ],
)
def test_time(signing: str, moved: int, good: bool):
    secret = new_secret()
    assert genuine(signing, headers_of(signing, secret, at=NOW + moved), secret) is good


@pytest.mark.parametrize("signing", ["standard", *OTHERS])
def test_headers_that_came_twice(signing: str):
    """Servers join repeated headers with a comma."""
    secret = new_secret()
    headers = headers_of(signing, secret)
    for name in headers:
        twice = {**headers, name: f"{headers[name]},{headers[name]}"}
        assert not genuine(signing, twice, secret), name


def test_several_signatures_while_a_sender_rotates():
    secret, other = new_secret(), new_secret()
    headers = headers_of("standard", secret)
    good = headers["webhook-signature"]
    bad = sign_standard(other, "msg_1", NOW, BODY)

    assert genuine("standard", {**headers, "webhook-signature": f"v1a,x {bad} {good}"}, secret)
    crowd = " ".join([bad] * 10_000 + [good])
    assert not genuine("standard", {**headers, "webhook-signature": crowd}, secret)


def test_parts_cannot_be_moved_from_one_header_into_another():
    """`id.time.body` has two readings if an id contains a dot and a body starts with a time."""
    secret = new_secret()
    body = f"{NOW}.rest".encode()
    signature = sign_standard(secret, "msg", 123, body)  # an old signature
    moved = {
        "webhook-id": "msg.123",
        "webhook-timestamp": str(NOW),
        "webhook-signature": signature,
    }
    assert not genuine("standard", moved, secret, body=b"rest")


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook-id": "", "webhook-timestamp": "1", "webhook-signature": "v1,"},
        {"webhook-id": "a" * 151, "webhook-timestamp": str(NOW), "webhook-signature": "v1,"},
        {"webhook-id": "a\x00", "webhook-timestamp": str(NOW), "webhook-signature": "v1,"},
        {"webhook-id": "ä", "webhook-timestamp": "١", "webhook-signature": "v1,é"},
        {"webhook-id": "a", "webhook-timestamp": "-1", "webhook-signature": "v1,AAAA"},
        {"webhook-id": "a", "webhook-timestamp": "1e9", "webhook-signature": "v1,AAAA"},
        {"webhook-id": "a", "webhook-timestamp": "9" * 400, "webhook-signature": "v1,AAAA"},
    ],
)
def test_invalid_headers_are_refused(headers: dict[str, str]):
    assert not genuine("standard", headers, new_secret())


def key_for(signing: str, value: object, at: int = NOW) -> str:
    """Return the key of a request with `value` as JSON."""
    body = json.dumps(value).encode()
    signed = read_signed(signing, headers_of(signing, "0" * 16, body, at), body)
    assert signed is not None
    return signed.key(body, value)


def test_a_github_request_is_identified_by_its_body():
    """The header X-GitHub-Delivery is not signed, and a body can have any field."""
    value = {"id": "evt_1", "event_id": "Ev1", "": "x"}
    body = json.dumps(value).encode()
    for delivery in ("1", "2"):
        headers = {**headers_of("github", "0" * 16, body), "x-github-delivery": delivery}
        signed = read_signed("github", headers, body)
        assert signed is not None
        assert signed.key(body, value) == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize(("signing", "field"), [("slack", "event_id"), ("stripe", "id")])
def test_an_event_is_identified_by_its_id_in_the_body(signing: str, field: str):
    other = {"slack": "id", "stripe": "event_id"}[signing]
    assert key_for(signing, {field: "evt_1", other: "x"}) == "evt_1"
    without_id = [
        {"data": {field: "evt_1"}, other: "evt_1"},
        {field: 1},
        {field: ["evt_1"]},
        {field: ""},
        {field: "a" * 151},
        {field: "a\n"},
        {field: "ä"},
        [field],
        "evt_1",
        None,
    ]
    for value in without_id:
        digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
        assert key_for(signing, value) == key_for(signing, value, NOW + 60) == digest, value


@pytest.mark.parametrize(
    ("signing", "secret"),
    [
        ("standard", "whsec_short"),
        ("standard", "whsec_" + base64.b64encode(bytes(23)).decode()),
        ("standard", "whsec_no base64 at all, really"),
        ("github", "x" * 15),
        ("github", "x" * 201),
        ("slack", "ünïcödé-ünïcödé-ünïcödé"),
        ("stripe", " " * 20),
        ("github", "two\nlines, and more than that"),
    ],
)
def test_invalid_secrets_are_refused(signing: str, secret: str):
    with pytest.raises(ValueError, match=r"secret|Secret"):
        key_of(signing, secret)


def test_signatures_of_other_versions_are_ignored():
    """Entries of other signature versions are ignored, even with the same bytes."""
    secret, body, at = new_secret(), b"{}", NOW
    made = sign_standard(secret, "m", at, body)
    key = key_of("standard", secret)
    for other in ("v1a,", "v2,", "", "v1,v1,"):
        signature = made.replace("v1,", other)
        headers = {"webhook-id": "m", "webhook-timestamp": str(at), "webhook-signature": signature}
        assert not is_genuine(read_signed("standard", headers, body), body, [key], at), signature


@pytest.mark.parametrize("header", ["sha1=", "v0=", ""])
def test_a_digest_without_its_name(header: str):
    body, secret = b"{}", "a secret of sixteen"
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    signed = read_signed("github", {"x-hub-signature-256": f"{header}{mac}"}, body)
    assert not is_genuine(signed, body, [secret.encode()], 0)


def test_an_invalid_time_of_stripe_is_refused():
    for at in ("", "-1", "1e9", "9" * 5_000):
        assert read_signed("stripe", {"stripe-signature": f"t={at},v1={'0' * 64}"}, b"") is None

"""JPEG, WebP and GIF in a run's page: decoded in a sandbox, and hidden without one."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client, override_settings

from agents.documents import reader as reading
from agents.documents.reader import picture_size
from agents.services.files import shown_pictures
from tests.agents.web.conftest import SignIn
from tests.agents.web.test_said import outputs_of
from tests.support import site_writer
from tests.support.documents import reading_documents, samples
from tests.support.pictures import png

pytestmark = pytest.mark.bubblewrap

PIXEL = b"\x2c\0\0\0\0\1\0\1\0\0" + b"\2\2\x44\1\0"
"""One frame of a GIF: one pixel at the top left."""


@pytest.fixture
def _reading() -> Iterator[None]:
    with reading_documents():
        shown_pictures._kept.clear()
        yield


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    return sign_in("olga")


def gif(width: int, height: int, frames: int = 1) -> bytes:
    head = b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + b"\xff\0\0\0\0\xff"
    delay = b"\x21\xf9\x04\0\1\0\0\0"
    return head + (delay + PIXEL) * frames + b";"


def jpeg_of(width: int, height: int) -> bytes:
    """Return a small JPEG whose header claims this size."""
    data = bytearray(samples()["small.jpg"])
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def webp_of(width: int, height: int) -> bytes:
    """Return a lossless WebP whose header claims this size."""
    data = bytearray(samples()["lossless.webp"])
    rest = int.from_bytes(data[21:25], "little") >> 28
    bits = (width - 1) | (height - 1) << 14 | rest << 28
    data[21:25] = bits.to_bytes(4, "little")
    return bytes(data)


def pixels_of(answer: HttpResponse) -> tuple[int, int]:
    """Return the width and height of the PNG in the response."""
    assert answer.status_code == 200, answer.content[:200]
    assert answer["Content-Type"] == "image/png"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer.content.endswith(b"IEND\xaeB`\x82")
    found = picture_size(answer.content)
    assert found is not None
    return found[1:]


@pytest.mark.usefixtures("_reading")
def test_pictures_of_other_kinds_are_shown(run: str, olga: Client) -> None:
    outputs = outputs_of(run)
    shown = {
        "a.jpg": samples()["small.jpg"],
        "b.JPEG": samples()["small.jpg"],
        "c.webp": samples()["small.webp"],
        "d.gif": samples()["small.gif"],
        # Wrong names, and files that are valid in other formats: only pixels remain.
        "e.gif": samples()["lossless.webp"],
        "f.png": samples()["small.jpg"],
        "g.jpg": samples()["small.jpg"] + b"<script>alert(1)</script>PK\x03\x04",
    }
    for name, data in shown.items():
        (outputs / name).write_bytes(data)
    (outputs / "moving.gif").write_bytes(gif(3, 2, frames=10_000) + b"<script>alert(1)</script>")
    (outputs / "big.jpg").write_bytes(jpeg_of(6000, 4000))
    text = "".join(f"![{name}]({name})" for name in shown)
    last = site_writer.append(run, [("text.completed", {"part_id": "1", "text": text})])

    for name in shown:
        answer = olga.get(f"/runs/{run}/pictures/{name}")
        assert pixels_of(answer) == (64, 48), name
        assert b"script" not in answer.content
        assert b"where I live" not in answer.content
    assert pixels_of(olga.get(f"/runs/{run}/pictures/moving.gif")) == (3, 2)
    listed = olga.get(f"/runs/{run}/summary/").json()["outputs"]
    assert all(file["picture"] for file in listed["files"]), listed
    assert listed["not_shown"] == ""
    said = str(olga.get(f"/runs/{run}/said/?seq={last}").json())
    assert said.count("/pictures/") == len(shown)

    # The picture is kept, for this user only.
    reads = len(shown_pictures._kept)
    assert pixels_of(olga.get(f"/runs/{run}/pictures/a.jpg")) == (64, 48)
    assert len(shown_pictures._kept) == reads


@pytest.mark.usefixtures("_reading")
def test_a_hostile_file_is_not_shown_as_a_picture_and_costs_little(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = outputs_of(run)
    bad = {
        "bomb.jpg": jpeg_of(65_000, 65_000),
        "bomb.webp": webp_of(16_383, 16_383),
        "bomb.gif": gif(65_535, 65_535),
        "bomb.png": samples()["bomb.png"],
        "page.gif": b"<script>alert(1)</script>",
        "svg.jpg": b"<svg onload='alert(1)'/>",
        "script.gif": b"GIF89a/*" + b"\1" * 20 + b"*/=1;alert(1)",
        "cut.jpg": samples()["small.jpg"][:200],
        "empty.webp": b"",
    }
    for name, data in bad.items():
        (outputs / name).write_bytes(data)
    (outputs.parent / "secret.jpg").write_bytes(samples()["small.jpg"])
    (outputs / "link.jpg").symlink_to(outputs.parent / "secret.jpg")
    os.mkfifo(outputs / "pipe.gif")
    (outputs / "directory.gif").mkdir()
    for name in (*bad, "link.jpg", "pipe.gif", "directory.gif", "none.webp", "../secret.jpg"):
        answer = olga.get(f"/runs/{run}/pictures/{name}")
        assert answer.status_code == 404, name
    # It is not decoded again for each view.
    monkeypatch.setattr(shown_pictures, "_decode", lambda *_: pytest.fail("tried again"))
    assert olga.get(f"/runs/{run}/pictures/bomb.jpg").status_code == 404


@pytest.mark.slow_cases
@pytest.mark.usefixtures("_reading")
@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("print('PHNjcmlwdD4=', end='')", 404),
        ("print('no base64!', end='')", 404),
        ("while True: pass", 404),
        ("x = bytearray(3_000_000_000)", 404),
        ("while True: print('A' * 1_000_000)", 404),
        ("import sys; sys.stdout.write({tailed!r})", 200),
        ("import sys; sys.stdout.write({photo!r})", 404),
    ],
)
def test_a_decoder_that_was_taken_over_shows_pixels_or_nothing(
    program: str, status: int, run: str, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded(data: bytes) -> str:
        return reading.base64.b64encode(data).decode()

    tailed = encoded(png() + b"<script>alert(1)</script>")
    photo = encoded(samples()["small.jpg"])
    if "{" in program:
        program = program.format(tailed=tailed, photo=photo)
    monkeypatch.setattr(reading, "_source", lambda _: program)
    if program == "while True: pass":  # the others end, on a busy machine later than this
        monkeypatch.setattr(reading, "SHOWN_SECONDS", 1.0)
    (outputs_of(run) / "a.jpg").write_bytes(samples()["small.jpg"])
    answer = olga.get(f"/runs/{run}/pictures/a.jpg")
    assert answer.status_code == status
    assert b"script" not in answer.content or status == 404
    if status == 200:
        assert pixels_of(answer) == (4, 3)


@pytest.mark.usefixtures("_reading")
def test_concurrent_decoding_is_limited(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (outputs_of(run) / "a.jpg").write_bytes(samples()["small.jpg"])
    monkeypatch.setattr(shown_pictures, "WAIT_SECONDS", 0.05)
    for _ in range(shown_pictures.AT_ONCE):
        assert shown_pictures.reading_turn.acquire(timeout=1)
    try:
        answer = olga.get(f"/runs/{run}/pictures/a.jpg")
        assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    finally:
        for _ in range(shown_pictures.AT_ONCE):
            shown_pictures.reading_turn.release()
    assert pixels_of(olga.get(f"/runs/{run}/pictures/a.jpg")) == (64, 48)


def test_without_the_toolbox_they_are_downloads_and_the_page_gives_the_reason(
    run: str, olga: Client
) -> None:
    with override_settings(VEL={**settings.VEL, "DOCUMENTS_TOOLBOX": "none-of-this-name"}):
        outputs = outputs_of(run)
        # A JPEG header with a size, without a picture.
        (outputs / "a.jpg").write_bytes(b"\xff\xd8\xff\xc0\0\x11\x08\0\1\0\1" + b"\0" * 99)
        (outputs / "b.png").write_bytes(png())
        text = "![a](a.jpg) ![b](b.png)"
        last = site_writer.append(run, [("text.completed", {"part_id": "1", "text": text})])
        listed = olga.get(f"/runs/{run}/summary/").json()["outputs"]
        assert [bool(file["picture"]) for file in listed["files"]] == [False, True]
        assert "JPEG, WebP and GIF pictures are not shown here: the toolbox" in listed["not_shown"]
        said = str(olga.get(f"/runs/{run}/said/?seq={last}").json())
        assert f"/runs/{run}/files/a.jpg" in said
        assert f"/runs/{run}/pictures/b.png" in said
        assert "pictures/a.jpg" not in said
        assert olga.get(f"/runs/{run}/pictures/a.jpg").status_code == 404
        (outputs / "a.jpg").unlink()
        assert olga.get(f"/runs/{run}/summary/").json()["outputs"]["not_shown"] == ""

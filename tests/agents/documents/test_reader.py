"""Files of strangers are read in sandboxes: texts of good files, and no harm by bad ones."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import override_settings

from agents.documents import reader as module
from agents.documents.reader import DocumentReader, Picture, picture_size
from sandbox.cancellation import Cancellation
from sandbox.uids import uid_for
from tests.support.documents import (
    docx,
    laughing_docx,
    pdf,
    png,
    reading_documents,
    samples,
    zip_bomb,
)
from tests.support.hang import HANG

pytestmark = pytest.mark.bubblewrap


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[DocumentReader]:
    # The limit of CPU time stays, so a busy machine fails no test.
    monkeypatch.setattr(module, "SECONDS", HANG)
    monkeypatch.setattr(module, "SHOWN_SECONDS", HANG)
    with reading_documents():
        yield new_reader()


def new_reader() -> DocumentReader:
    uid = uid_for(900) if os.geteuid() == 0 else None
    return DocumentReader(uid, uid)


def read(reader: DocumentReader, kind: str, data: bytes) -> tuple[str, str]:
    return reader.markdown(kind, data, Cancellation())


@pytest.mark.slow
def test_documents_become_markdown(reader: DocumentReader) -> None:
    files = samples()
    assert read(reader, "docx", files["letter.docx"]) == ("Dear Ada\n\ntea < coffee\n", "")
    assert read(reader, "pdf", files["page.pdf"]) == ("## Page 1\n\nHello page\n\n", "")
    table = "| thing | a\\|b |\n| --- | --- |\n| tea | 3.5 |\n"
    assert table in read(reader, "xlsx", files["prices.xlsx"])[0]
    deck = read(reader, "pptx", files["deck.pptx"])[0]
    assert deck.startswith("## Slide 1\n\nQuarter four")
    assert "Notes: Say it slowly" in deck
    page = b"<h1>T</h1><script>x()</script><style>y</style><p>Hi <b>you</b></p>"
    assert read(reader, "html", page) == ("# T\n\nHi **you**\n", "")
    assert read(reader, "rtf", rb"{\rtf1 Hello {\b bold}.}") == ("Hello bold.\n", "")


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("docx", b"PK\x03\x04 nothing", "it is damaged, or its content does not match its name"),
        ("pdf", b"%PDF-1.4 nothing", "it is damaged, or its content does not match its name"),
        ("pdf", pdf(""), "it contains no text; it may be a scan"),
        ("docx", laughing_docx(), "it is damaged, or its content does not match its name"),
    ],
    ids=["docx", "pdf", "scan", "laughing"],
)
def test_bad_documents_are_reported(
    reader: DocumentReader, kind: str, data: bytes, problem: str
) -> None:
    assert read(reader, kind, data) == ("", problem)


@pytest.mark.slow
def test_a_bomb_is_reported(reader: DocumentReader) -> None:
    # Made here and not as a parameter: each process that collects the tests would make one.
    assert read(reader, "docx", zip_bomb()) == (
        "",
        "its unpacked content is larger than the limit for a file",
    )


def test_a_long_text_is_cut(reader: DocumentReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MARKDOWN_CHARS", 100)
    text, _ = read(reader, "html", b"<p>" + b"word " * 100)
    assert text.endswith("[The rest is left out.]\n")
    assert len(text) < 140


def test_conversions_over_a_limit_are_ended(
    reader: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate a file that takes over the program."""
    sources = {"loop": "while True: pass", "memory": "x = bytearray(3_000_000_000)"}
    monkeypatch.setattr(module, "_source", lambda program: sources["loop"])
    monkeypatch.setattr(module, "SECONDS", 0.5)
    assert read(reader, "pdf", b"") == ("", module.TOO_MUCH)
    monkeypatch.setattr(module, "_source", lambda program: sources["memory"])
    monkeypatch.setattr(module, "SECONDS", 30)
    assert read(reader, "pdf", b"") == ("", module.TOO_MUCH)


def test_a_program_that_was_taken_over_sees_nothing(
    reader: DocumentReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = (
        "import os, socket\n"
        "seen = [p for p in ('/sandbox', '/work', '/root', '/var/lib/vel', '/etc/shadow')"
        " if os.path.exists(p)]\n"
        "try:\n    socket.create_connection(('1.1.1.1', 53), 1)\n    seen.append('network')\n"
        "except OSError:\n    pass\n"
        "try:\n    open('/opt/toolbox/x', 'w')\n    seen.append('toolbox')\n"
        "except OSError:\n    pass\n"
        "print(seen, [k for k in os.environ if 'KEY' in k or 'DATABASE' in k])\n"
    )
    monkeypatch.setattr(module, "_source", lambda program: look)
    assert read(reader, "pdf", b"") == ("[] []\n", "")
    # Its output for a picture is checked, too.
    monkeypatch.setattr(module, "_source", lambda program: "print('PHN2Zz4=', end='')")
    assert reader.picture(png(), Cancellation()) == module.FAILED


@pytest.mark.slow
def test_pictures_are_made_small_and_only_their_pixels_stay(reader: DocumentReader) -> None:
    files = samples()

    def shown(data: bytes) -> Picture:
        picture = reader.picture(data, Cancellation())
        assert isinstance(picture, Picture)
        assert picture_size(picture.data) == (picture.media_type, picture.width, picture.height)
        assert len(picture.data) <= module.PICTURE_BYTES
        return picture

    photo = shown(files["photo.png"])
    assert (photo.width, photo.height) == (1568, 784)
    assert b"where I live" in files["small.jpg"]
    assert b"where I live" not in shown(files["small.jpg"]).data
    assert b"<script>" not in shown(png(after=b"<script>alert(1)</script>")).data
    assert (shown(png(3000, 1)).width, shown(png(1, 1)).width) == (1568, 1)


def test_pictures_that_unpack_to_too_much_are_not_shown(reader: DocumentReader) -> None:
    bomb = samples()["bomb.png"]
    assert len(bomb) < 1_000_000
    assert (
        reader.picture(bomb, Cancellation())
        == "it is damaged, or its content does not match its name"
    )
    assert isinstance(reader.picture(b"\x89PNG\r\n\x1a\nxx", Cancellation()), str)


def test_a_missing_toolbox_is_reported() -> None:
    for name in ("", "none-of-this-name"):
        with override_settings(VEL={**settings.VEL, "DOCUMENTS_TOOLBOX": name}):
            reader = new_reader()
            assert reader.problem
            assert read(reader, "docx", docx("x")) == ("", reader.problem)
            # Small pictures are sent unchanged: their headers show that they are small.
            small = png(20, 10)
            assert reader.picture(small, Cancellation()) == Picture("image/png", 20, 10, small)
            assert isinstance(reader.picture(png(2001, 1), Cancellation()), str)
            assert isinstance(reader.picture(small + b"x" * 1_000_000, Cancellation()), str)


def test_a_cancelled_reading_ends(reader: DocumentReader) -> None:
    cancel = Cancellation()
    cancel.cancel()
    assert reader.markdown("pdf", pdf("x"), cancel)[0] == ""

"""A file is accepted if its name and its bytes agree on an allowed kind."""

from __future__ import annotations

import io

import pytest

from agents.documents.kinds import (
    BY_SUFFIX,
    FAMILIES,
    OTHER,
    NotTaken,
    free_name,
    kind_of,
    original_name,
    safe_name,
    same_name,
)
from agents.documents.reader import picture_size
from tests.support.documents import docx, pdf, png

ZIP = b"PK\x03\x04" + b"\0" * 30
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0000b08000a0014011100")


def family(name: str, data: bytes, allowed: tuple[str, ...] = FAMILIES) -> str:
    try:
        return kind_of(name, io.BytesIO(data), allowed).family
    except NotTaken:
        return ""


@pytest.mark.parametrize(
    ("name", "data", "taken"),
    [
        ("a.txt", b"hello", "text"),
        ("a.csv", "ä;ö\n".encode("cp1252"), "text"),
        ("a.csv", "a\tb".encode("utf-16"), "text"),
        ("Makefile", b"all:\n", "text"),
        ("run.sh", b"#!/bin/sh\n", "text"),
        ("empty", b"", "text"),
        ("page.HTML", b"<script>", "text"),
        ("a.pdf", pdf("x"), "pdf"),
        ("a.docx", docx("x"), "office"),
        ("a.png", png(), "image"),
        ("a.zip", ZIP, "archive"),
        ("a.tar", b"\0" * 257 + b"ustar\0", "archive"),
        ("a.parquet", b"PAR1....", "data"),
        # The name and the bytes disagree.
        ("a.txt", b"MZ\x90\0\x03\0\0\0", ""),
        ("a.txt", pdf("x"), ""),
        ("a.csv", png(), ""),
        ("a.js", b"GIF89a/*\0*/=1;", ""),
        ("a.js", b"GIF89a=1;alert(1)", ""),
        ("a.pdf", b"<script>", ""),
        ("a.pdf", b"junk\n%PDF-1.4", ""),
        ("a.docx", ZIP, ""),
        ("a.docx", b"\xd0\xcf\x11\xe0", ""),
        ("a.png", JPEG, ""),
        ("a.webp", b"RIFF1234AVI ", ""),
        # Programs match no kind and are not text.
        ("a.exe", b"MZ\x90\0\x03\0\0\0", ""),
        ("a", b"\x7fELF\x02\x01\x01\0", ""),
    ],
)
def test_name_and_bytes_must_agree(name: str, data: bytes, taken: str) -> None:
    assert family(name, data) == taken


def test_the_operator_configures_the_kinds() -> None:
    assert family("a.pdf", pdf("x"), ("text",)) == ""
    assert family("a.exe", b"MZ\0", (*FAMILIES, OTHER)) == OTHER
    # Even if all kinds are allowed, the bytes must match a known suffix.
    assert family("a.pdf", b"MZ\0", (*FAMILIES, OTHER)) == ""
    assert {kind.family for kind in BY_SUFFIX.values()} == set(FAMILIES)


def test_a_text_is_looked_at_to_its_end() -> None:
    assert family("a.txt", b"x" * 3_000_000) == "text"
    assert family("a.txt", b"x" * 3_000_000 + b"\0") == ""


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("lpt1.tar.gz", "_lpt1.tar.gz"),
        ("console.txt", "console.txt"),
        ("a. . .", "a"),
        (".bashrc", "bashrc"),
        ("-rf.txt", "rf.txt"),
        ("../..", "upload"),
        ("x" * 300, "x" * 180),
        ("a\u200bb\u2066c.txt", "a_b_c.txt"),
        ('a.txt\n- {"path": "/etc"}', "etc_}" if False else 'etc"}'),
        ("\U000e0041.txt", "_.txt"),
    ],
)
def test_names(given: str, stored: str) -> None:
    assert safe_name(given) == stored


def test_a_number_makes_names_differ_for_every_file_system() -> None:
    taken = {same_name("Report.DOCX"), same_name("über.txt")}
    assert free_name("report.docx", taken) == "report-2.docx"
    assert free_name("u\u0308ber.txt", taken) == "u\u0308ber-2.txt"
    assert free_name("a.docx", {same_name("a.docx.md")}, ".md") == "a-2.docx"
    with pytest.raises(LookupError):
        free_name("a", {same_name("a"), *(same_name(f"a-{n}") for n in range(2, 2_000))})


def test_the_name_as_it_came_is_for_people() -> None:
    assert original_name("../Übersicht\u202e.xlsx") == "../Übersicht_.xlsx"


def test_sizes_of_pictures_come_from_their_headers() -> None:
    webp = (
        b"RIFF\0\0\0\0WEBPVP8X"
        + b"\0" * 8
        + (299).to_bytes(3, "little")
        + (9).to_bytes(3, "little")
    )
    gif = b"GIF89a\x2c\x01\x0a\x00"
    assert picture_size(png(300, 10)) == ("image/png", 300, 10)
    assert picture_size(gif) == ("image/gif", 300, 10)
    assert picture_size(webp) == ("image/webp", 300, 10)
    assert picture_size(JPEG) == ("image/jpeg", 20, 10)
    for broken in (b"", png()[:20], JPEG[:12], JPEG[:4] + b"\xff" * 9, gif[:8], webp[:25], b"<svg"):
        assert picture_size(broken) is None

"""PDF files as pictures of their pages: rendered in a sandbox, for the owner alone."""

from __future__ import annotations

import base64
import html
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from django.http import HttpResponse
from django.test import Client

from agents.documents import reader as reading
from agents.documents.pdf_page import MOST_PAGES, PAGE_SIDE, PdfPage, parse_page
from agents.documents.reader import lacking, picture_size
from agents.features.file_browser import pdf_pages
from agents.features.file_browser.pdf_pages import Busy
from agents.models import Thread
from agents.services.files.shown_pictures import AT_ONCE, reading_turn
from agents.settings import DataSettings
from sandbox.linux import probe
from sandbox.toolboxes.find import find_toolbox
from tests.agents.features.file_browser.test_browser import put_output, show
from tests.agents.web.conftest import SignIn, run, sign_in
from tests.support import site_writer
from tests.support.documents import reading_documents, samples
from tests.support.hang import HANG
from tests.support.pdfs import (
    active_pdf,
    deep_tree_pdf,
    loop_tree_pdf,
    nested_forms_pdf,
    nested_pdf,
    pages_pdf,
    picture_bomb_pdf,
    repeated_page_pdf,
    slow_pdf,
    unpacking_pdf,
)
from tests.support.pictures import png

__all__ = ["run", "sign_in"]

pytestmark = pytest.mark.bubblewrap

OUTPUTS = "/sandbox/outputs"
BROKEN = "it is damaged, or its content does not match its name"


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # The limit of CPU time stays, so a busy machine fails no test.
    monkeypatch.setattr(reading, "SHOWN_SECONDS", HANG)
    with reading_documents() as data:
        pdf_pages._kept.clear()
        yield data


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    return sign_in("olga")


def sources(page: str) -> list[str]:
    """Return the addresses of the pages' pictures."""
    return [
        html.unescape(found) for found in re.findall(r'<img class="picture"[^>]*src="(.*?)"', page)
    ]


def size_of(answer: HttpResponse) -> tuple[int, int]:
    assert answer.status_code == 200, answer.content[:200]
    assert answer["Content-Type"] == "image/png"
    found = picture_size(answer.content)
    assert found is not None
    return found[1:]


def page_url(run: str, name: str, more: str = "") -> str:
    return f"/runs/{run}/browse/page/?path={quote(f'{OUTPUTS}/{name}')}{more}"


def test_the_first_pages_are_shown_and_a_link_shows_more(run: str, olga: Client) -> None:
    put_output(run, "book.PDF", pages_pdf(12))
    page = show(olga, run, f"{OUTPUTS}/book.PDF")
    assert "12 pages" in page
    found = sources(page)
    assert len(found) == 10
    assert 'width="1131" height="1600" alt="Page 3 of 12"' in page
    assert page.count('loading="lazy"') == 10
    assert size_of(olga.get(found[2])) == (1131, 1600)
    assert olga.get(found[2]).content != olga.get(found[3]).content
    (more,) = re.findall(r'href="(\?[^"]*)"[^>]*>Show more pages', page)
    path, _, anchor = html.unescape(more).partition("#")
    page = olga.get(f"/runs/{run}/browse/{path}").content.decode()
    assert len(sources(page)) == 12
    assert f'id="{anchor}"' in page
    assert "Show more pages" not in page


def test_a_browser_keeps_a_page_for_its_user_and_asks_before_each_use(
    run: str, olga: Client, sign_in: SignIn
) -> None:
    put_output(run, "book.pdf", pages_pdf(2))
    url = page_url(run, "book.pdf", "&number=2")
    answer = olga.get(url)
    assert answer["Cache-Control"] == "private, no-cache"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    pdf_pages._kept.clear()
    again = olga.get(url, headers={"if-none-match": answer["ETag"]})
    assert (again.status_code, again["Cache-Control"]) == (304, "private, no-cache")
    assert not pdf_pages._kept, "an unchanged page is not rendered again"
    other = sign_in("peter")
    assert other.get(url, headers={"if-none-match": answer["ETag"]}).status_code == 404
    put_output(run, "book.pdf", pages_pdf(3))
    assert olga.get(url, headers={"if-none-match": answer["ETag"]}).status_code == 200


def test_a_page_belongs_to_the_content_that_the_user_opened(run: str, olga: Client) -> None:
    put_output(run, "book.pdf", pages_pdf(2))
    first, _ = sources(show(olga, run, f"{OUTPUTS}/book.pdf"))
    put_output(run, "book.pdf", pages_pdf(1))
    answer = olga.get(first)
    assert (answer.status_code, answer.content) == (404, b"the file has changed; reload the page")
    assert answer["Content-Type"].startswith("text/plain")


def test_a_file_that_changes_while_a_request_waits_is_not_rendered(run: str) -> None:
    thread = Thread.objects.get(pk=site_writer.run(run)["thread"])
    place = outputs_of(run) / "book.pdf"
    put_output(run, "book.pdf", pages_pdf(2))
    with place.open("rb") as stream:
        digest = pdf_pages.digest_of(stream)
        place.write_bytes(pages_pdf(3))
        assert pdf_pages.page_of(thread, 1, stream, digest, 1) == pdf_pages.CHANGED


def outputs_of(run: str) -> Path:
    return DataSettings.now().workspaces / site_writer.run(run)["thread"] / "outputs"


def test_an_erased_file_has_no_pages_any_more(run: str, olga: Client) -> None:
    put_output(run, "book.pdf", pages_pdf(1))
    (first,) = sources(show(olga, run, f"{OUTPUTS}/book.pdf"))
    assert olga.get(first).status_code == 200
    (outputs_of(run) / "book.pdf").unlink()
    assert olga.get(first).status_code == 404


@pytest.mark.parametrize("superuser", [False, True])
def test_pages_belong_to_the_owner_alone(
    run: str, olga: Client, sign_in: SignIn, superuser: bool
) -> None:
    put_output(run, "book.pdf", pages_pdf(1))
    assert olga.get(page_url(run, "book.pdf")).status_code == 200
    other = sign_in("peter", superuser=superuser)
    assert other.get(page_url(run, "book.pdf")).status_code == 404
    assert Client().get(page_url(run, "book.pdf")).status_code == 302


@pytest.mark.parametrize(
    "more", ["&number=3", "&number=501", "&number=9999999999", "&digest=", "&digest=x"]
)
def test_a_page_that_does_not_exist_is_not_found(run: str, olga: Client, more: str) -> None:
    put_output(run, "book.pdf", pages_pdf(2))
    status = 200 if more.endswith("9999999999") else 404
    assert olga.get(page_url(run, "book.pdf", more)).status_code == status


def test_only_pdf_files_have_pages(run: str, olga: Client) -> None:
    put_output(run, "notes.txt", pages_pdf(1))
    assert olga.get(page_url(run, "notes.txt")).status_code == 404
    assert olga.get(page_url(run, "../secret.pdf")).status_code == 404


def test_a_file_name_with_markup_is_text(run: str, olga: Client) -> None:
    name = "\"><img src=x onerror='alert(1)'>.pdf"
    put_output(run, name, pages_pdf(1))
    page = show(olga, run, f"{OUTPUTS}/{name}")
    assert "<img src=x" not in page
    (source,) = sources(page)
    assert size_of(olga.get(source)) == (1131, 1600)


CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    "broken": (lambda: b"%PDF-1.7 <script>alert(1)</script>", BROKEN),
    "empty": (lambda: b"", BROKEN),
    "program": (lambda: b"MZ\x90\0" + bytes(4_000), BROKEN),
    "locked": (lambda: samples()["locked.pdf"], "it needs a password"),
    "loop": (loop_tree_pdf, "it is damaged"),
    "large": (lambda: pages_pdf(1) + bytes(20_000_000), "it is too large for a preview"),
}
HEAVY: dict[str, tuple[Callable[[], bytes], str]] = {
    "tree": (deep_tree_pdf, "it is damaged"),
    "unpacking": (unpacking_pdf, reading.TOO_MUCH),
    "forms": (nested_forms_pdf, reading.TOO_MUCH),
}


@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in HEAVY)]
)
def test_a_malicious_file_gives_a_reason(run: str, olga: Client, name: str) -> None:
    make, reason = {**CASES, **HEAVY}[name]
    put_output(run, "bad.pdf", make())
    page = show(olga, run, f"{OUTPUTS}/bad.pdf")
    assert f"cannot be shown: {html.escape(reason)}." in page
    assert "<script>alert" not in page
    answer = olga.get(page_url(run, "bad.pdf"))
    assert (answer.status_code, answer.content.decode()) == (404, reason)


@pytest.mark.parametrize("seconds", ["of the clock", "of the processor"])
def test_a_page_that_takes_too_long_is_stopped_and_others_are_shown(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    of_clock = seconds == "of the clock"
    monkeypatch.setattr(reading, "SHOWN_SECONDS", 2.0 if of_clock else HANG)
    limits = replace(reading._SHOWN_LIMITS, cpu_seconds=int(HANG) if of_clock else 2)
    monkeypatch.setattr(reading, "_SHOWN_LIMITS", limits)
    put_output(run, "slow.pdf", slow_pdf())
    page = show(olga, run, f"{OUTPUTS}/slow.pdf")
    assert f"cannot be shown: {reading.TOO_MUCH}." in page
    if not of_clock:  # a clock may end the program before it has counted pages
        assert "1 page " in page
        assert "Page 1 cannot be shown" in page
    # It is not rendered again for each view.
    monkeypatch.setattr(pdf_pages, "_rendered", lambda *_: pytest.fail("tried again"))
    assert olga.get(page_url(run, "slow.pdf")).status_code == 404


def test_a_reason_in_the_cache_is_shown_in_the_language_of_each_reader(
    run: str, olga: Client
) -> None:
    put_output(run, "bad.pdf", CASES["large"][0]())
    for language, reason in (
        ("de", "zu groß für eine Vorschau"),
        ("en", "too large for a preview"),
    ):
        olga.cookies["vel_language"] = language
        assert reason in show(olga, run, f"{OUTPUTS}/bad.pdf")
        assert reason in olga.get(page_url(run, "bad.pdf")).content.decode()


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (active_pdf, (1131, 1600)),
        (nested_pdf, (1131, 1600)),
        (picture_bomb_pdf, (1131, 1600)),
        (lambda: pages_pdf(1, box=b"[0 0 14400000 14400000]"), (1600, 1600)),
        (lambda: pages_pdf(1, box=b"[0 0 1000000 1]"), (1600, 1)),
        (lambda: pages_pdf(1, box=b"[0 0 20 10]"), (80, 40)),
    ],
    ids=["active", "nested", "picture", "huge", "thin", "tiny"],
)
def test_a_strange_page_is_a_picture_within_the_limits(
    run: str, olga: Client, make: Callable[[], bytes], size: tuple[int, int]
) -> None:
    put_output(run, "strange.pdf", make())
    (source,) = sources(show(olga, run, f"{OUTPUTS}/strange.pdf"))
    assert size_of(olga.get(source)) == size
    assert max(size) <= PAGE_SIDE


@pytest.mark.parametrize(
    "make",
    [
        lambda: repeated_page_pdf(1_000_000),
        lambda: pages_pdf(1).replace(b"/Count 1", b"/Count 999999"),
    ],
    ids=["real", "claimed"],
)
def test_of_a_million_pages_only_the_first_are_shown(
    run: str, olga: Client, make: Callable[[], bytes]
) -> None:
    put_output(run, "many.pdf", make())
    page = show(olga, run, f"{OUTPUTS}/many.pdf")
    assert "pages ·" in page
    assert len(sources(page)) == 10
    page = show(olga, run, f"{OUTPUTS}/many.pdf", "&pages=9999999")
    assert len(sources(page)) == MOST_PAGES
    assert "The first 500 pages are shown." in page
    assert olga.get(page_url(run, "many.pdf", "&number=501")).status_code == 404


def test_without_a_sandbox_nothing_is_read(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_output(run, "book.pdf", pages_pdf(1))
    monkeypatch.setattr(pdf_pages, "PROBLEM_SECONDS", 0.0)
    with monkeypatch.context() as broken:
        broken.setattr(probe, "_good", None)
        broken.setenv("PATH", "")
        page = show(olga, run, f"{OUTPUTS}/book.pdf")
        assert "the server has no working sandbox, and Vel reads no file outside one" in page
        assert sources(page) == []
        assert olga.get(page_url(run, "book.pdf")).status_code == 404
    assert len(sources(show(olga, run, f"{OUTPUTS}/book.pdf"))) == 1


def test_a_toolbox_without_the_renderer_is_named(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    assert lacking(find_toolbox(data / "toolboxes", "documents")) == []
    put_output(run, "book.pdf", pages_pdf(1))
    monkeypatch.setattr(reading, "PACKAGES", (*reading.PACKAGES, "other"))
    monkeypatch.setattr(reading, "PAGES_PACKAGE", "other")
    page = show(olga, run, f"{OUTPUTS}/book.pdf")
    assert "the toolbox &#x27;documents&#x27; on the server was built without other" in page


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("", None),
        ("{}", None),
        ("12", None),
        ("-1 2\n", None),
        ("1 " + "9" * 5_000 + "\n", None),
        ("٣\n", None),
        ("99999999\n", None),
        ("3 5000 0\n", 3),
        ("3\nnot base64!", 3),
    ],
)
def test_nothing_in_the_renderers_output_is_trusted(output: str, count: int | None) -> None:
    found = parse_page(output, "")
    assert found == "it could not be read" if count is None else isinstance(found, PdfPage)
    if isinstance(found, PdfPage):
        assert found.count == count
        assert set(found.sizes) <= {(PAGE_SIDE, 1)}


@pytest.mark.parametrize(
    "sent", [b"<svg onload='alert(1)'/>", png() + b"<script>alert(1)</script>"]
)
def test_a_renderer_that_was_taken_over_shows_pixels_or_nothing(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    text = f"1 4 3\n{base64.b64encode(sent).decode()}"
    monkeypatch.setattr(reading, "_source", lambda _: f"print({text!r}, end='')")
    put_output(run, "book.pdf", pages_pdf(1))
    answer = olga.get(page_url(run, "book.pdf"))
    assert b"script" not in answer.content
    assert b"svg" not in answer.content
    assert answer.status_code == (404 if sent.startswith(b"<svg") else 200)


def test_a_busy_server_says_so_and_renders_nothing(
    run: str, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_output(run, "book.pdf", pages_pdf(1))
    monkeypatch.setattr(pdf_pages, "WAIT_SECONDS", 0.05)
    for _ in range(AT_ONCE):
        assert reading_turn.acquire(timeout=1)
    try:
        answer = olga.get(page_url(run, "book.pdf"))
        assert (answer.status_code, answer["Retry-After"]) == (503, "3")
        assert "Try again in a moment." in show(olga, run, f"{OUTPUTS}/book.pdf")
    finally:
        for _ in range(AT_ONCE):
            reading_turn.release()
    assert olga.get(page_url(run, "book.pdf")).status_code == 200


def test_a_user_renders_one_page_at_a_time_and_few_requests_wait() -> None:
    refused: list[int] = []
    started = [threading.Event() for _ in range(pdf_pages.MOST_WAITING - 1)]

    def wait_for_a_turn(begin: threading.Event) -> None:
        begin.set()
        with pdf_pages._turn_of(1):
            assert pdf_pages._rendering == {1}

    threads = [threading.Thread(target=wait_for_a_turn, args=(event,)) for event in started]
    with pdf_pages._turn_of(1):
        for thread in threads:
            thread.start()
        for event in started:
            assert event.wait(HANG)
        while pdf_pages._requests[1] < pdf_pages.MOST_WAITING:
            assert all(thread.is_alive() for thread in threads), "one did not wait"
            threading.Event().wait(0.01)
        with pytest.raises(Busy) as caught, pdf_pages._turn_of(1):
            refused.append(1)
        assert caught.value.status == 429
        # Another user does not wait for them.
        with pdf_pages._turn_of(2):
            assert pdf_pages._rendering == {1, 2}
    for thread in threads:
        thread.join(HANG)
    assert refused == []
    assert not pdf_pages._requests
    assert not pdf_pages._rendering

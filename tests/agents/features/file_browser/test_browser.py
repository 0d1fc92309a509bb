"""The files of a conversation in the browser: a tree, previews, downloads, zip files."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.test import Client, override_settings

from agents.features.file_browser import archive
from agents.features.file_browser.previews import Table, sorted_rows
from agents.models import Run, StateFile
from agents.services import open_connections
from agents.settings import DataSettings
from tests.agents.web.conftest import SignIn, run, sign_in
from tests.agents.web.test_downloads import body_of
from tests.support import site_writer
from tests.support.documents import reading_documents, samples

__all__ = ["run", "sign_in"]

WORKSPACE = "/sandbox/workspace"


@pytest.fixture
def files(run: str) -> Path:
    """Create the thread's directories, as its first command does. Return the workspace."""
    root = DataSettings.now().workspaces / site_writer.run(run)["thread"]
    for area in ("outputs", "workspace", "shared"):
        (root / area).mkdir(parents=True)
    return root / "workspace"


@pytest.fixture
def olga(sign_in: SignIn) -> Client:
    return sign_in("olga")


def show(client: Client, run: str, path: str = "", more: str = "") -> str:
    answer = client.get(f"/runs/{run}/browse/?path={quote(path)}{more}")
    assert answer.status_code == 200
    return answer.content.decode()


def zipped(client: Client, run: str, path: str = "") -> dict[str, bytes]:
    answer: Any = client.get(f"/runs/{run}/browse/zip/?path={quote(path)}")
    assert answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as found:
        return {name: found.read(name) for name in found.namelist()}


def test_the_tree_lists_directories_first_and_links_each_file(
    run: str, files: Path, olga: Client
) -> None:
    (files / "src").mkdir()
    (files / "src" / "main.py").write_text("print()")
    (files / "a.txt").write_text("x")
    text = show(olga, run)
    assert text.index("<summary>src</summary>") < text.index(">a.txt</a>")
    assert f'href="?path={quote(WORKSPACE + "/src/main.py", safe="")}"' in text


def test_a_text_is_previewed_with_its_language(run: str, files: Path, olga: Client) -> None:
    (files / "main.py").write_text("print('<b>\u202e')")
    text = show(olga, run, f"{WORKSPACE}/main.py")
    assert 'data-language="python"' in text
    assert "print(&#x27;&lt;b&gt;⟨U+202E⟩&#x27;)" in text


def test_deep_json_stays_on_one_line(run: str, files: Path, olga: Client) -> None:
    deep = "[" * 400 + "0, " * 80_000 + "0" + "]" * 400  # 64 MB with indentation
    (files / "deep.json").write_text(deep)
    (files / "flat.json").write_text('{"a":[1]}')
    assert deep in show(olga, run, f"{WORKSPACE}/deep.json")
    assert "{\n  &quot;a&quot;: [\n" in show(olga, run, f"{WORKSPACE}/flat.json")


def test_a_long_text_is_cut_and_the_page_says_so(run: str, files: Path, olga: Client) -> None:
    (files / "long.txt").write_text("é" * 200_001)
    text = show(olga, run, f"{WORKSPACE}/long.txt")
    assert "Only the first 256,000 bytes are shown." in text
    assert text.count("é") == 128_000


def test_a_table_is_sorted_by_the_value_of_numbers(run: str, files: Path, olga: Client) -> None:
    (files / "rain.csv").write_text('month;mm\nJune;37\nMay;4\nJuly;"1,000"\n')
    text = show(olga, run, f"{WORKSPACE}/rain.csv", "&sort=1&desc=1")
    assert text.index("<td>July</td>") < text.index("<td>June</td>") < text.index("<td>May</td>")
    assert 'aria-sort="descending"' in text


def test_texts_in_a_column_of_numbers_come_last() -> None:
    table = Table(["a"], [["x"], ["10"], ["9"]], is_cut=False)
    assert sorted_rows(table, 0, descending=False) == [["9"], ["10"], ["x"]]


@pytest.mark.parametrize("descending", [False, True])
def test_empty_cells_and_nan_come_last_in_their_order(descending: bool) -> None:
    cells = ["2", "nan", "1", "", "NaN", "3", " ", "-nan", "1.0", "inf"]
    rows = [["row"], *([str(at), cell] for at, cell in enumerate(cells))]
    found = sorted_rows(Table(["a", "b"], rows, is_cut=False), 1, descending=descending)
    numbers = ["9", "5", "0", "2", "8"] if descending else ["2", "8", "0", "5", "9"]
    assert [row[0] for row in found] == [*numbers, "row", "1", "3", "4", "6", "7"]


@pytest.mark.parametrize("more", ["&sort=99", "&sort=-1", "&sort=x", "&sort=1&desc=2"])
def test_a_wrong_sort_is_ignored(run: str, files: Path, olga: Client, more: str) -> None:
    (files / "rain.csv").write_text("month,mm\nJune,37\nMay,4\n")
    assert "<td>June</td>" in show(olga, run, f"{WORKSPACE}/rain.csv", more)


def test_markdown_is_sent_as_a_tree_without_html(run: str, files: Path, olga: Client) -> None:
    (files / "notes.md").write_text("# Rain\n\n</script><script>alert(1)</script>")
    text = show(olga, run, f"{WORKSPACE}/notes.md")
    assert '<script id="markdown-tree" type="application/json">' in text
    assert "<script>alert" not in text


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff\xfe\xfd abc", b"%PDF-1.7\n\xe2\xe3"])
def test_a_file_that_is_not_text_has_no_preview(
    run: str, files: Path, olga: Client, data: bytes
) -> None:
    (files / "thing.bin").write_bytes(data)
    assert "There is no preview for this kind of file." in show(olga, run, f"{WORKSPACE}/thing.bin")


def test_a_missing_file_is_named(run: str, files: Path, olga: Client) -> None:
    assert "nowhere.txt" in show(olga, run, f"{WORKSPACE}/nowhere.txt")
    answer = olga.get(f"/runs/{run}/browse/file/?path={WORKSPACE}/nowhere.txt")
    assert answer.status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/sandbox/../../../../etc/passwd",
        "/sandbox/workspace/link",
        "/sandbox/workspace/outside/passwd",
        "../../../../etc/passwd",
    ],
)
@pytest.mark.parametrize("door", ["", "file/", "page/", "picture/", "zip/"])
def test_no_path_leads_out_of_the_files_of_the_thread(
    run: str, files: Path, olga: Client, path: str, door: str
) -> None:
    (files / "link").symlink_to("/etc/passwd")
    (files / "outside").symlink_to("/etc")
    answer: Any = olga.get(f"/runs/{run}/browse/{door}?path={quote(path)}")
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert b"root:" not in body


def test_a_zip_file_has_the_files_below_a_directory_and_no_links(
    run: str, files: Path, olga: Client
) -> None:
    (files / "src").mkdir()
    (files / "src" / "päge.txt").write_text("one")
    (files / "src" / "secret").symlink_to("/etc/passwd")
    os.mkfifo(files / "src" / "pipe")
    assert zipped(olga, run, f"{WORKSPACE}/src") == {"päge.txt": b"one"}
    assert zipped(olga, run) == {"workspace/src/päge.txt": b"one"}


def test_downloads_without_a_place_say_whether_the_user_or_the_server_has_too_many(
    run: str, files: Path, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "a.txt").write_text("x")
    doors = (f"/runs/{run}/browse/zip/", f"/runs/{run}/browse/file/?path={WORKSPACE}/a.txt")
    owner = Run.objects.get(pk=run).owner_id

    def statuses() -> list[int]:
        return [olga.get(door).status_code for door in doors]

    monkeypatch.setattr(open_connections, "_most", 2)  # one of them for each person
    places = [open_connections.take_place("another person")]
    places.append(open_connections.take_place("a third person"))
    assert statuses() == [503, 503]
    places.pop().release()
    places.append(open_connections.take_place(owner))
    assert statuses() == [429, 429]


def test_a_directory_that_is_too_large_is_refused_with_a_remedy(
    run: str, files: Path, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 10)
    (files / "a.txt").write_text("x" * 11)
    answer = olga.get(f"/runs/{run}/browse/zip/", follow=True)
    assert "Choose a directory below it" in answer.content.decode()


def test_a_file_is_downloaded_as_an_attachment(run: str, files: Path, olga: Client) -> None:
    (files / "page.html").write_text("<script>alert(1)</script>")
    answer: Any = olga.get(f"/runs/{run}/browse/file/?path={WORKSPACE}/page.html")
    assert answer["Content-Disposition"] == 'attachment; filename="page.html"'
    assert answer["Content-Type"] == "application/octet-stream"
    assert body_of(answer) == b"<script>alert(1)</script>"


@pytest.mark.parametrize("door", ["", "file/", "page/", "picture/", "zip/"])
@pytest.mark.parametrize("superuser", [False, True])
def test_files_belong_to_the_owner_alone(
    run: str, files: Path, sign_in: SignIn, door: str, superuser: bool
) -> None:
    (files / "a.txt").write_text("secret")
    other = sign_in("peter", superuser=superuser)
    assert other.get(f"/runs/{run}/browse/{door}?path={WORKSPACE}/a.txt").status_code == 404
    assert Client().get(f"/runs/{run}/browse/{door}").status_code == 302


def test_a_conversation_without_files_says_so(run: str, olga: Client) -> None:
    assert "No files yet." in show(olga, run)
    assert StateFile.objects.count() == 0


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_document_is_shown_as_its_text(run: str, olga: Client) -> None:
    with reading_documents():
        for name in ("page.pdf", "prices.xlsx"):
            put_output(run, name, samples()[name])
        page = show(olga, run, "/sandbox/outputs/page.pdf", "&as=text")
        assert "without its layout" in page
        assert ">Show the pages</a>" in page
        assert "Hello page" in page
        assert "a|b" in show(olga, run, "/sandbox/outputs/prices.xlsx").replace("\\", "")
        put_output(run, "bad.pdf", b"%PDF-1.7 <script>alert(1)</script>")
        page = show(olga, run, "/sandbox/outputs/bad.pdf", "&as=text")
        assert "it is damaged" in page
        assert "<script>alert" not in page


@pytest.mark.parametrize("more", ["", "&as=text"])
def test_a_document_that_cannot_be_read_here_is_a_download(
    run: str, files: Path, olga: Client, more: str
) -> None:
    (files / "a.pdf").write_bytes(b"%PDF-1.7")
    with override_settings(VEL={**settings.VEL, "DOCUMENTS_TOOLBOX": ""}):
        page = show(olga, run, f"{WORKSPACE}/a.pdf", more)
    assert "cannot be shown" in page
    assert f"/runs/{run}/browse/file/" in page


def put_output(run: str, name: str, data: bytes) -> None:
    root = DataSettings.now().workspaces / site_writer.run(run)["thread"] / "outputs"
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)

"""Hostile contents stay text on each page that shows them, in English and in German."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.browser.test_every_page import LISTEN
from tests.browser.test_fuzzed_transcript import PIECES, RUNS
from tests.support.hang import HANG
from tests.support.pdfs import active_pdf
from tests.support.site import Site

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.usefixtures("allowed"),
    pytest.mark.timeout(6 * HANG),
]

NAME = f"<svg onload='{RUNS}'>\u202e"
ALL = "".join(piece for piece in PIECES if "\0" not in piece)

SUSPICIOUS = """
() => [...document.querySelectorAll("*")].flatMap((each) => {
    const found = [];
    if (["BASE", "EMBED", "IFRAME", "OBJECT", "STYLE"].includes(each.tagName)) found.push(each);
    const isCode = each.tagName === "SCRIPT" && each.type !== "application/json";
    if (isCode && !each.src) found.push(each);
    for (const { name, value } of each.attributes) {
        if (name.startsWith("on")) found.push(each);
        if (!["action", "formaction", "href", "src"].includes(name)) continue;
        const { origin, protocol } = new URL(value, location);
        const isLink = each.tagName === "A" && ["http:", "https:", "mailto:"].includes(protocol);
        if (origin !== location.origin && !isLink) found.push(each);
    }
    return found.map((one) => one.outerHTML.slice(0, 200));
})
"""
"""Elements and attributes that only HTML from a text could have."""


def planted(site: Site) -> dict[str, str]:
    """Store hostile texts in all that a page displays. Return the addresses by name."""
    site.do("make_user", name=NAME)
    foreign = site.do("make_run", owner=NAME, message=ALL)
    site.do("ask", run=foreign, tool=NAME, tool_input={NAME: ALL})
    edit = {"path": f"/sandbox/outputs/{NAME}", "old_text": ALL, "new_text": ALL[::-1]}
    asked = site.do("ask", run=site.do("make_run", owner="ada"), tool="edit_file", tool_input=edit)
    runs: list[str] = []
    thread = None
    for _ in range(2):
        run = site.do("make_run", owner="ada", message=f"{NAME} {ALL}", thread=thread)
        thread = site.do("run", run=run)["thread"]
        site.do("reply", run=run, text=ALL)
        value = {NAME: [ALL, {"deep": ALL}]}
        site.do("keep", run=run, value=value, files=[NAME, ALL.replace("\n", "")[:200]])
        ended = [
            ("output.invalid", {"attempt": 1, "problems": [{"path": NAME, "message": ALL}]}),
            ("run.completed", {"finish_reason": "end_turn", "structured_output": value}),
        ]
        site.do("append", run=run, events=ended, status="completed")
        runs.append(run)
    assert thread is not None
    paths = {
        "earlier messages": f"/runs/{runs[1]}/",
        "later messages": f"/runs/{runs[0]}/",
        "home": "/",
        "history": "/runs/",
        "conversations": "/conversations/?q=script",
        "diff": f"/approvals/{asked}/",
        "approvals": "/approvals/",
        "usage": "/usage/",
        "trace": f"/runs/{runs[0]}/trace/",
        "fork": f"/runs/{runs[0]}/fork/",
        "changed files": f"/runs/{runs[0]}/changes/",
        "erase": f"/runs/{runs[0]}/erase/",
    }
    paths |= {f"console by {by}": f"/console/?by={by}" for by in ("agent", "model", "user", "tool")}
    outputs = Path(site.directory) / "workspaces" / thread / "outputs"
    for name in write_files(outputs):
        path = quote(f"/sandbox/outputs/{name}", safe="")
        paths[f"the file {name}"] = f"/runs/{runs[0]}/browse/?path={path}"
    return paths


def write_files(outputs: Path) -> list[str]:
    """Write a hostile file of each kind with a preview. Return the names."""
    table = io.StringIO()
    csv.writer(table).writerows([[NAME, ALL], [ALL, NAME], [NAME, ALL]])
    deep = '{"x":' * 900 + json.dumps(ALL) + "}" * 900
    files: dict[str, str | bytes] = {
        "a.csv": table.getvalue(),
        "b.json": json.dumps({NAME: [ALL, {ALL: None}]}),
        "c.json": deep,
        "d.md": ALL,
        "e.html": ALL,
        "f.py": ALL,
        "g.patch": f"--- a\n+++ b\n@@ -1 +1 @@\n-{NAME}\n+{ALL}",
        "h.pdf": active_pdf(),
        "i.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='{RUNS}'/>",
        "j.png": f"<script>{RUNS}</script>",
        "<img src=x onerror=window.pwned=1>.txt": ALL,
    }
    outputs.mkdir(parents=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (outputs / name).write_bytes(data)
    return list(files)


def problems(page: Page) -> list[str]:
    page.evaluate(
        "document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })"
    )
    found: list[str] = page.evaluate(SUSPICIOUS)
    found += page.evaluate("window.refused")
    if page.evaluate("window.pwned") is not None:
        found.append("a script of an agent ran")
    if "\u202e" in page.locator("main").inner_text():
        found.append("a hidden character is not visible")
    return found


def test_hostile_contents_stay_text_on_each_page(site: Site, new_page: NewPage) -> None:
    paths = planted(site)
    # A second page, because browsers log an error for a picture that cannot be shown.
    page = new_page("ada").context.new_page()
    page.add_init_script(LISTEN)
    wrong: list[str] = []
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if site.url in asked.url else wrong.append(asked.url))
    for language in ("en", "de"):
        page.context.add_cookies([{"name": "vel_language", "value": language, "url": site.url}])
        for name, path in paths.items():
            answer = page.goto(path)
            assert answer is not None
            assert answer.ok, (name, answer.status)
            expect(page.locator("html")).to_have_attribute("lang", language)
            if name.endswith("messages"):
                page.locator("#transcript .value").wait_for()
            wrong += [f"{name}, {language}: {text}" for text in problems(page)]
    assert wrong == []

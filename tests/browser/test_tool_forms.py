"""Inputs and outputs of tools in the form of each tool, and hostile contents in each form."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from tests.browser.conftest import NewPage, look, overflow, shoot
from tests.browser.test_every_page import LISTEN, serious
from tests.browser.test_fuzzed_transcript import PIECES
from tests.browser.test_transcript import Events, call, said, shown
from tests.support.pictures import png
from tests.support.site import Site

pytestmark = pytest.mark.chromium

TABLE = "| town | mm |\n|---|---|\n| Seattle \\| north | 1,037 |\n| Rome | 80 |"


def opened(page: Page) -> Locator:
    """Open all calls, and return them."""
    page.locator("#transcript details.fold").evaluate_all(
        "all => all.forEach((fold) => { fold.open = true; })"
    )
    return page.locator("#transcript details.fold:not(.group)")


def calls(*tools: tuple[str, dict[str, Any], object]) -> Events:
    events: Events = []
    for number, (tool, given, output) in enumerate(tools):
        text = output if isinstance(output, str) else json.dumps(output)
        events += [*call(number, tool, input=given, output=text), *said("Next.")]
    return events


def test_each_tool_is_shown_in_its_form(site: Site, new_page: NewPage) -> None:
    todos = [
        {"content": "Read", "status": "completed"},
        {"content": "Draw", "status": "in_progress", "note": "soon"},
    ]
    ran = {"success": False, "exit_code": 2, "stdout": "one\ntwo\n", "stderr": "no such file\n"}
    lines = '     1 | day,rain\n     2 | "Mon, 1st",3\n     3 | Tue,0'
    events = calls(
        ("execute", {"command": "ls | wc -l", "timeout": 5}, ran),
        ("execute_sql", {"query": "SELECT 1"}, {"row_count": 2, "success": True, "table": TABLE}),
        ("read_file", {"path": "rain.csv"}, {"path": "/rain.csv", "content": lines}),
        ("anything", {"deep": {"list": [1, {"x": None}]}}, {"a": [1, 2], "big": 2**60, "t": "x"}),
        ("write_todos", {"todos": todos}, {"todos": "…", "counts": {"completed": 1, "pending": 0}}),
        ("edit_file", {"path": "a", "old_text": "dry", "new_text": "wet"}, {"replacements": 1}),
    )
    # The journal has no rows of these calls, and browsers log an error for each missing one.
    page = shown(site, new_page, events, "completed").context.new_page()
    page.goto(f"/runs/{site.do('newest_run')}/")
    expect(page.locator("#transcript .said")).to_have_count(6)
    terminal, sql, csv, other, plan, _ = opened(page).all()
    expect(terminal.locator("pre:visible")).to_have_text(
        ["ls | wc -l", "5", "one\ntwo\n", "no such file\n"]
    )
    expect(terminal.locator(".event.bad")).to_have_text("Exit code 2")
    expect(sql.locator("th")).to_have_text(["town", "mm"])
    expect(sql.locator("td")).to_have_text(["Seattle | north", "1,037", "Rome", "80"])
    expect(csv.locator("td")).to_have_text(["Mon, 1st", "3", "Tue", "0"])
    expect(other.locator(".shaped .json > ul > li")).to_have_text(
        ["a [2]", "big 1152921504606846976", "t x"]
    )
    other.locator(".shaped .json summary").click()
    expect(other.locator(".shaped .json details li")).to_have_text(["0 1", "1 2"])
    expect(plan.locator(".todos li")).to_have_text(["Read", "Draw (soon)"])
    expect(plan.locator(".shaped")).to_have_text("1 completed")
    for width, colours in ((1280, "light"), (390, "dark")):
        look(page, width, colours)  # type: ignore[arg-type]
        shoot(page, f"tool-forms-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page, "#transcript") == []
    other.get_by_role("button", name="Show as text").click()
    expect(other.locator("pre:visible")).to_have_text(
        '{"a": [1, 2], "big": 1152921504606846976, "t": "x"}'
    )
    other.get_by_role("button", name="Show formatted").click()
    expect(other.locator(".shaped")).to_be_visible()


def test_a_picture_that_an_agent_read_comes_from_the_safe_address(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    outputs = site.directory / "workspaces" / site.do("run", run=run)["thread"] / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "a b.png").write_bytes(png(20, 10))
    paths = [
        "/sandbox/outputs/a b.png",
        "/sandbox/outputs/../../../etc/evil.png",
        "https://evil.example/outputs/x.png",
        "/sandbox/workspace/x.png",
    ]
    events = calls(*(("read_file", {"path": path}, "[image]") for path in paths))
    last = site.do("append", run=run, events=events, status="completed")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(last))
    opened(page)
    pictures = page.locator("#transcript img")
    expect(pictures).to_have_count(1)
    expect(pictures).to_have_attribute("src", f"/runs/{run}/pictures/a%20b.png")
    expect(pictures).to_have_js_property("naturalWidth", 20)


def hostile(source: random.Random) -> Any:
    """Return a JSON value made of hostile texts."""

    def text() -> str:
        return "".join(source.choices(PIECES, k=source.randint(1, 4)))

    def value(depth: int) -> Any:
        match source.randint(0, 6 if depth < 4 else 3):
            case 0:
                return source.choice([None, True, -1, 1e300, 2**70])
            case 4 | 5:
                return {text(): value(depth + 1) for _ in range(source.randint(0, 4))}
            case 6:
                return [value(depth + 1) for _ in range(source.randint(0, 4))]
            case _:
                return text()

    return value(0)


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_contents_stay_text_in_each_form(site: Site, new_page: NewPage, seed: int) -> None:
    source = random.Random(seed)
    tools = ["execute", "execute_python", "execute_sql", "describe_table", "read_file"]
    fields = ["stdout", "stderr", "exit_code", "timed_out", "table", "content", "counts", "note"]
    fields += ["__proto__", "constructor", "length"]
    inputs = ["command", "code", "query", "path", "todos", "file_path", "__proto__", "toString"]
    made = []
    for tool in [*tools, "write_todos", "toString", "__proto__", "unknown"] * 6:
        given: Any = {name: hostile(source) for name in source.sample(inputs, 4)}
        given["todos"] = source.choice([[hostile(source) for _ in range(4)], hostile(source)])
        given["path"] = f"{source.choice(PIECES)}.{source.choice(['csv', 'json', 'png', 'py', ''])}"
        output: Any = {name: hostile(source) for name in source.sample(fields, 6)}
        if source.random() < 0.5:
            row = "|".join(source.choices(PIECES, k=3)).replace("\n", " ")
            output |= {"table": f"|{row}|\n|---|---|---|\n|{row}|", "stdout": "".join(PIECES)}
            output |= {"exit_code": hostile(source), "content": f'{row},"\n{row},x\n'}
        made.append((tool, given, output if source.random() < 0.8 else hostile(source)))
    deep = "[" * 3_000 + "]" * 3_000
    made += [("unknown", {"x": 1}, deep), ("execute_sql", {"query": "x"}, "|\n|-|\n|" * 2_000)]

    run = site.do("make_run", owner="olga")
    last = site.do("append", run=run, events=calls(*made), status="running")
    # A second page, because browsers log an error for a refused picture.
    page = new_page("olga").context.new_page()
    page.add_init_script(LISTEN)
    dialogs: list[str] = []
    foreign: list[str] = []
    broken: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.on(
        "request", lambda asked: foreign.append(asked.url) if site.url not in asked.url else None
    )
    page.goto(f"/runs/{run}/")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(last))
    opened(page)
    for _ in range(3):
        page.locator("#transcript .json details").evaluate_all(
            "all => all.slice(0, 500).forEach((fold) => { fold.open = true; })"
        )
    shoot(page, f"tool-forms-hostile-{seed}")
    assert page.evaluate("window.pwned") is None
    assert (dialogs, foreign, broken) == ([], [], [])
    assert page.evaluate("window.refused") == []
    assert page.evaluate("Object.keys(Object.prototype)") == []
    for tag in ("script", "svg", "iframe", "style", "form", "base", "object", "[id]", "[onerror]"):
        expect(page.locator(f"#transcript {tag}")).to_have_count(0)
    expect(page.locator("#transcript .said")).to_have_count(len(made))
    assert page.locator("#transcript").inner_text().count("<script>") > 20
    for name in (".terminal", "table", ".json", ".todos"):
        assert page.locator(f"#transcript {name}").count() > 0, name
    for picture in page.locator("#transcript img").all():
        assert (picture.get_attribute("src") or "").startswith(f"/runs/{run}/pictures/")

"""A transcript with hostile output of an agent is displayed as text, and the page stays fast."""

from __future__ import annotations

import random

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.conftest import NewPage
from tests.browser.test_every_page import LISTEN
from tests.support.pictures import png
from tests.support.site import Site

pytestmark = pytest.mark.chromium

MOST_LOOPS = 30
"""The limit for the processor time of the whole page, in units of `LOOP`."""
LOOP = "() => { let sum = 0; for (let at = 0; at < 3e8; at++) sum += at % 7; return sum; }"


def processor_seconds(devtools: CDPSession) -> float:
    """Return the processor time of the page's thread, in seconds."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def seconds_of_loop(page: Page, devtools: CDPSession) -> float:
    """Return the current processor time of `LOOP`, which is longer on a busy machine."""
    before = processor_seconds(devtools)
    page.evaluate(LOOP)
    return processor_seconds(devtools) - before


RUNS = "window.pwned = 1; alert(1)"
PIECES = [
    f"<script>{RUNS}</script>",
    f"<img src=x onerror='{RUNS}'>",
    f"<svg onload='{RUNS}'><style>*{{display:none}}</style></svg>",
    f"<iframe srcdoc='<script>{RUNS}</script>'></iframe>",
    f"<!-- {RUNS} -->",
    "<style>body{display:none}</style>",
    "<base href='https://evil.example/'>",
    "<form action='https://evil.example/'><button>Approve</button></form>",
    f"[click](javascript:{RUNS.replace(' ', '')})",
    f"[click](  JAVASCRIPT:{RUNS.replace(' ', '')})",
    "[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[bank.example](https://evil.example/)",
    "[x](https://bank.example@evil.example/)",
    "[x](https:\\\\evil.example)",
    "![x](https://evil.example/track.png)",
    "![x](javascript:alert(1))",
    "![x](outputs/evil.png)",
    "![x](/approvals/)",
    "![x](../../../../../etc/passwd.png)",
    "&lt;script&gt;&#x202e;&#0;",
    "\u202eevil\u2066\u200b\u00ad\U000e0041\ufeff",
    "\x00\x1b[2J\x07",
    "a{}b".format("\u0301" * 300),
    "{{7*7}} {% load x %} ${alert(1)}",
    "<div class='approval' id='approvals' data-approval='x'>Allow?</div>",
    "* " * 30 + "deep",
    "> " * 30 + "deep",
    "|" * 40 + "\n" + "|-" * 40 + "\n" + "|x" * 40,
    "```html\n<script>alert(1)</script>\n```",
    "`<b>`",
    "\n\n",
    "\n",
    " ",
]
LARGE = [
    "x" * 1_000_000,
    "\u202e" * 20_000,
    "".join("  " * depth + "- item\n" for depth in range(300)),
    "- a\n" * 5_000,
    "a|b\n-|-\n" + "1|2\n" * 5_000,
    "[" * 60_000,
    "*a_" * 20_000,
    "<b>" * 30_000,
]


@pytest.mark.slow
def test_the_worst_transcript_is_text_and_the_page_stays_quick(
    site: Site, new_page: NewPage
) -> None:
    source = random.Random(7)
    run = site.do("make_run", owner="olga", message=f"<script>{RUNS}</script>")
    outputs = site.directory / "workspaces" / site.do("run", run=run)["thread"] / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "evil.png").write_text(f"<script>{RUNS}</script>")
    (outputs / "good.png").write_bytes(png(20, 10) + f"<script>{RUNS}</script>".encode())
    texts = ["".join(source.choices(PIECES, k=source.randint(1, 12))) for _ in range(60)]
    texts += [f"![ok](outputs/good.png) {piece}" for piece in PIECES]
    events = [
        ("text.completed", {"part_id": str(at), "text": text})
        for at, text in enumerate([*texts, *LARGE])
    ]
    for at, text in enumerate(LARGE):
        call = {"call_id": f"c{at}", "tool": text[:200], "input": {text[:50]: text}}
        events += [
            ("tool.called", call),
            ("tool.completed", {"call_id": f"c{at}", "output": text}),
        ]
    last = site.do("append", run=run, events=events, status="running")

    # A second page, because browsers log an error for an invalid picture.
    page = new_page("olga").context.new_page()
    page.add_init_script(LISTEN)
    dialogs: list[str] = []
    foreign: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on(
        "request", lambda asked: foreign.append(asked.url) if site.url not in asked.url else None
    )
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    unit = seconds_of_loop(page, devtools)
    page.goto(f"/runs/{run}/")
    expect(page.locator("#run")).to_have_attribute("data-seq", str(last))
    # The last text that becomes Markdown: all previous ones have.
    end = page.locator("#transcript > div").nth(len(texts) - 1)
    expect(end.locator(".markdown")).to_have_count(1)

    assert page.evaluate("window.pwned") is None
    assert dialogs == []
    assert foreign == []
    assert page.evaluate("window.refused") == []
    assert processor_seconds(devtools) < MOST_LOOPS * unit
    for tag in ("script", "svg", "iframe", "style", "form", "base", "object", "[id]", "[onerror]"):
        expect(page.locator(f"#transcript {tag}")).to_have_count(0)
    links = page.locator("#transcript .markdown a")
    assert links.count() > 20
    for href, rel in links.evaluate_all(
        "all => all.map((link) => [link.getAttribute('href') ?? '', link.getAttribute('rel')])"
    ):
        assert (rel == "noopener noreferrer nofollow") == href.startswith("http")
        assert href.startswith(("https://", f"/runs/{run}/files/")), href
    spoofs = page.get_by_role("link", name="bank.example", exact=True)
    expect(spoofs.first.locator("xpath=..")).to_contain_text("bank.example (evil.example)")
    pictures = page.locator("#transcript .markdown img")
    pictures.evaluate_all("all => all.forEach((image) => { image.loading = 'eager'; })")
    expect(page.locator("#transcript img[src$='evil.png']")).to_have_count(0)
    sources = pictures.evaluate_all("all => all.map((image) => image.getAttribute('src'))")
    for source_of in set(sources):
        assert source_of == f"/runs/{run}/pictures/good.png", source_of
    # Long texts are cut, and shown completely on request.
    more = page.get_by_role("button", name="Show more").first
    before = page.locator("#transcript .said").filter(has_text="xxxxxxxx").first
    assert len(before.inner_text()) < 30_000
    more.click()
    expect(page.get_by_role("button", name="Show more").first).to_contain_text("780,000")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert processor_seconds(devtools) < MOST_LOOPS * unit

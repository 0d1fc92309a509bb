"""A user on a run's page, while other processes write."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import BELOW, COLOURS, NewPage, look, overflow
from tests.support.site import PASSWORD, Site

pytestmark = pytest.mark.chromium

Events = list[tuple[str, dict[str, Any]]]

FIRST_STEP: Events = [
    ("run.started", {"agent": "assistant"}),
    ("step.started", {"step": 1}),
    ("text.started", {"part_id": "1.0"}),
    ("text.delta", {"part_id": "1.0", "text": "I will read "}),
    ("text.delta", {"part_id": "1.0", "text": "the file"}),
]
SECOND_STEP: Events = [
    ("text.completed", {"part_id": "1.0", "text": "I will read the file."}),
    ("step.completed", {"step": 1, "finish_reason": "tool_use", "usage": {}}),
    ("tool.called", {"call_id": "c1", "tool": "read_file", "input": {"path": "a.txt"}}),
    ("tool.started", {"call_id": "c1", "attempt": 1}),
    ("tool.completed", {"call_id": "c1", "output": "the content"}),
    (
        "todos.updated",
        {
            "todos": [
                {"content": "Read it", "status": "completed"},
                {"content": "Sum it up", "status": "in_progress"},
            ]
        },
    ),
    ("text.completed", {"part_id": "2.0", "text": "It says: the content."}),
    ("run.completed", {"finish_reason": "end_turn"}),
]


def append(site: Site, run: str, events: Events, status: str | None = None) -> int:
    return site.do("append", run=run, events=events, status=status)


def wait_for_seq(page: Page, seq: int) -> None:
    expect(page.locator("#run")).to_have_attribute("data-seq", str(seq))


def transcript(page: Page) -> str:
    return page.locator("#transcript").inner_text()


def test_signing_in_starting_a_run_and_watching_it(site: Site, new_page: NewPage) -> None:
    site.do("make_run", owner="peter")  # to create the agent
    page = new_page()
    page.goto("/")
    page.get_by_label("User name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("What should it do?").fill("Read a.txt")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".asked")).to_have_text("Read a.txt")
    expect(page.locator("#status")).to_have_text("queued")
    expect(page.get_by_text("Offline scripted model.")).to_be_visible()

    run = urlsplit(page.url).path.split("/")[2]
    wait_for_seq(page, append(site, run, FIRST_STEP, "running"))
    assert transcript(page) == "I will read the file"
    expect(page.locator("#status")).to_have_text("running")

    wait_for_seq(page, append(site, run, SECOND_STEP, "completed"))
    expect(page.locator("#status")).to_have_text("completed")
    expect(page.locator("#todos li")).to_have_text(["Read it", "Sum it up"])
    expect(page.locator("#transcript .said")).to_have_text(
        ["I will read the file.", "It says: the content."]
    )
    tool = page.locator("#transcript details")
    expect(tool).to_have_count(1)
    expect(tool.locator("pre").last).to_be_hidden()
    tool.locator("summary").click()
    expect(tool.locator("pre")).to_have_text(["a.txt", "the content"])
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


@pytest.mark.slow
def test_a_reload_shows_everything_once(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    append(site, run, FIRST_STEP, "running")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, 5)
    last = append(site, run, SECOND_STEP, "completed")
    wait_for_seq(page, last)
    before = transcript(page)

    page.reload()

    wait_for_seq(page, last)
    assert transcript(page) == before
    assert before.count("I will read the file.") == 1


def test_a_server_that_comes_back_leaves_no_gap_and_repeats_nothing(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    append(site, run, FIRST_STEP, "running")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, 5)

    site.kill_server()
    expect(page.locator("#connection")).to_contain_text("Connection lost")
    last = append(site, run, SECOND_STEP, "completed")
    site.start_server()

    wait_for_seq(page, last)
    expect(page.locator("#connection")).to_be_hidden()
    whole = transcript(page)
    page.reload()
    wait_for_seq(page, last)
    assert transcript(page) == whole


FALLBACK = {
    "step": 1,
    "from_provider": "anthropic",
    "from_model": "<b>one</b>",
    "provider": "google",
    "model": "two",
    "code": "connection",
    "reason": "the connection broke",
}


@pytest.mark.slow
def test_text_of_a_broken_model_call_disappears_with_the_retry(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    half_said: Events = [
        *FIRST_STEP,
        ("tool.input.started", {"call_id": "c0", "tool": "write_file"}),
        ("tool.input.delta", {"call_id": "c0", "text": '{"path": "x'}),
        ("step.reset", {"step": 1, "reason": "the connection broke"}),
        ("model.fallback", FALLBACK),
        ("text.started", {"part_id": "1.0"}),
        ("text.delta", {"part_id": "1.0", "text": "Second try"}),
    ]
    page = new_page("olga")
    page.goto(f"/runs/{run}/")

    wait_for_seq(page, append(site, run, half_said, "running"))

    assert transcript(page).splitlines() == [
        "The model call is repeated: the connection broke",
        "anthropic <b>one</b> is unavailable: google two continues.",
        "Second try",
    ]


@pytest.mark.slow
def test_the_hosts_of_a_command_are_shown_with_its_call(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    call = {"call_id": "c1", "tool": "execute", "input": {"command": "curl …"}}
    went = {"call_id": "c1", "host": "pypi.org", "port": 443, "sent": 120, "received": 4096}
    refused = {**went, "host": "<b>evil</b>", "sent": 0, "received": 0, "count": 3}
    events: Events = [
        ("tool.called", call),
        ("tool.completed", {"call_id": "c1", "output": "ok"}),
        ("sandbox.connection", {**went, "allowed": True, "reason": "allowed", "count": 1}),
        ("sandbox.connection", {**refused, "allowed": False, "reason": "not on the list"}),
    ]
    seq = append(site, run, events)
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, seq)
    page.locator("summary", has_text="execute").click()
    expect(page.get_by_text("pypi.org:443: 120 bytes sent, 4096 received")).to_be_visible()
    expect(page.get_by_text("<b>evil</b>:443: 3 times, refused: not on the list")).to_be_visible()


@pytest.mark.slow
def test_output_of_a_running_tool_is_shown_until_its_result_is_there(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    begun: Events = [
        ("tool.called", {"call_id": "c1", "tool": "execute", "input": {"command": "make"}}),
        ("tool.started", {"call_id": "c1", "attempt": 1}),
        ("tool.progress", {"call_id": "c1", "text": "one of "}),
        ("tool.progress", {"call_id": "c1", "text": "two"}),
    ]
    ended: Events = [
        ("tool.completed", {"call_id": "c1", "output": "one of two\ntwo of two"}),
        ("tool.progress", {"call_id": "c1", "text": "two of two"}),
    ]
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, append(site, run, begun, "running"))
    page.locator("summary", has_text="execute").click()
    output = page.locator("#transcript details pre").last
    expect(output).to_have_text("one of two")

    wait_for_seq(page, append(site, run, ended))

    expect(output).to_have_text("one of two\ntwo of two")


@pytest.mark.slow
def test_a_call_that_is_tried_again_is_a_note(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    retried = {"call_id": "c1", "attempt": 1, "code": "timeout", "message": "slow", "retry_in": 2.5}
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, append(site, run, [("tool.retried", retried)], "running"))
    assert transcript(page) == "Retrying in 2.5 s: slow"


@pytest.mark.slow
def test_a_long_run_is_followed_to_its_end_unless_somebody_reads_above(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    lines: Events = [
        ("text.completed", {"part_id": f"{n}.0", "text": f"Line {n}"}) for n in range(500)
    ]
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    at_bottom = f"{BELOW} <= 0"
    wait_for_seq(page, append(site, run, lines, "running"))
    page.wait_for_function(at_bottom)

    page.evaluate("scrollTo(0, 1000)")
    page.wait_for_function("scrollY === 1000")
    # Scroll events come with the next frame.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    wait_for_seq(page, append(site, run, [("text.completed", {"part_id": "x", "text": "More"})]))
    assert page.evaluate("scrollY") == 1000


@pytest.mark.slow
def test_a_phone_follows_to_the_form_and_not_to_the_sections_below(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    lines: Events = [
        ("text.completed", {"part_id": f"{n}.0", "text": f"Line {n}"}) for n in range(50)
    ]
    page = new_page("olga", width=390, height=844)
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, append(site, run, lines, "running"))
    page.wait_for_function(f"{BELOW} <= 0 && {BELOW} > -50")
    expect(page.locator("#composer")).to_be_in_viewport()


@pytest.mark.slow
def test_a_short_run_is_not_scrolled_because_of_a_long_plan_beside_it(
    site: Site, new_page: NewPage
) -> None:
    run = site.do("make_run", owner="olga")
    todos = [{"content": f"Step {n}", "status": "pending"} for n in range(60)]
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    wait_for_seq(page, append(site, run, [("todos.updated", {"todos": todos})], "running"))
    expect(page.get_by_text("Step 59")).to_have_count(1)
    wait_for_seq(page, append(site, run, [("text.completed", {"part_id": "1", "text": "Hi"})]))
    assert page.evaluate("document.body.scrollHeight > innerHeight")
    assert page.evaluate("scrollY") == 0


@pytest.mark.slow
def test_a_deliverable_is_downloaded(site: Site, new_page: NewPage, tmp_path: Path) -> None:
    run = site.do("make_run", owner="olga")
    thread = site.do("run", run=run)["thread"]
    outputs = site.directory / "workspaces" / thread / "outputs" / "data"
    outputs.mkdir(parents=True)
    (outputs / "a b.html").write_text("<script>document.title = 'x'</script>")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")

    with page.expect_download() as download:
        page.get_by_role("link", name="data/a b.html").click()

    assert download.value.suggested_filename == "a b.html"
    assert Path(download.value.path()).read_text() == "<script>document.title = 'x'</script>"


@pytest.mark.slow
def test_a_follow_up_to_a_busy_run_is_queued_below_it(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga", message="First")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")

    page.get_by_label("Follow-up message").fill("Second")
    page.get_by_role("button", name="Send").click()

    expect(page.locator("#thread li")).to_have_text(["queuedFirst", "pendingSecond"])
    expect(page.locator(".asked")).to_have_text("First")


@pytest.mark.slow
def test_cancelling_is_one_click(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#status")).to_have_text("cancelled")
    expect(page.locator("#transcript")).to_contain_text("Cancelled by olga")
    assert site.do("run", run=run)["status"] == "cancelled"


@pytest.mark.slow
def test_a_signed_out_user_gets_a_message(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#thread li")).to_have_count(1)
    (session,) = [
        cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "sessionid"
    ]
    site.do("sign_out", session=session)
    site.kill_server()
    site.start_server()
    expect(page.locator("#connection")).to_contain_text("signed out")


@pytest.mark.slow
def test_pages_fit_the_window(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga", message="x" * 300)
    wide = {"path": "y" * 400}
    append(site, run, FIRST_STEP, "running")
    append(site, run, [("tool.called", {"call_id": "c", "tool": "z" * 100, "input": wide})])
    site.do("ask", run=run, tool="execute", tool_input={"command": "w" * 400})
    signed_in, stranger = new_page("olga"), new_page()
    pages = {"/login/": stranger, "/": signed_in, "/runs/": signed_in, f"/runs/{run}/": signed_in}
    for path, page in pages.items():
        page.goto(path)
        if path == f"/runs/{run}/":
            page.locator(".approval").wait_for()
            page.get_by_text("Edit…", exact=True).click()
        for width in (1280, 390):
            for colours in COLOURS:
                look(page, width, colours)
                assert overflow(page) == 0, (path, width, colours)

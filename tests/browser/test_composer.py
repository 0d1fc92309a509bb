"""The composer: attachments, names of files, queued messages, stop, retry and edited messages."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import COLOURS, NewPage, look, overflow, shoot
from tests.browser.test_every_page import serious
from tests.support.site import Site

pytestmark = pytest.mark.chromium

DRAG = """([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name));
    for (const type of ["dragenter", "dragover", "drop"]) {
        document.querySelector(".conversation").dispatchEvent(
            new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }
}"""
PASTE = """(field) => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(["x"], "image.png", { type: "image/png" }));
    const options = { clipboardData, bubbles: true, cancelable: true };
    field.dispatchEvent(new ClipboardEvent("paste", options));
}"""


def without_sandbox(site: Site) -> str:
    """Start a run of an agent whose files are rows: uploads need no directories of its account."""
    return site.do("start_scripted", owner="olga", model="demo")


def opened(
    site: Site, new_page: NewPage, status: str = "completed", run: str = ""
) -> tuple[str, Page]:
    run = run or site.do("make_run", owner="olga", message="First")
    if status in ("completed", "failed", "cancelled"):
        site.do("end", run=run, status=status, events=[])
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    expect(page.locator("#thread li")).to_have_count(1)
    return run, page


def test_files_come_by_button_drag_and_paste_and_nothing_is_lost_on_an_error(
    site: Site, new_page: NewPage
) -> None:
    run, page = opened(site, new_page, run=without_sandbox(site))
    field = page.get_by_label("Follow-up message")
    field.fill("Look at <b>these</b>")
    page.locator("#composer input[type=file]").set_input_files(
        {"name": "<img src=x onerror=window.pwned=1>.csv", "mimeType": "", "buffer": b"a,b"}
    )
    page.evaluate(DRAG, ["bad\u202e.png", "no picture"])
    field.evaluate(PASTE)
    rows = page.locator("#composer .attached li")
    expect(rows.locator(".what")).to_have_text(
        ["<img src=x onerror=window.pwned=1>.csv", "bad⟨U+202E⟩.png", "image.png"]
    )
    shoot(page, "composer-attached")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#composer-problem")).to_have_text("2 files were not accepted: see below.")
    expect(rows.nth(1).locator(".bad")).to_contain_text("png")
    expect(rows.nth(0).locator(".bad")).to_have_count(0)
    expect(field).to_have_value("Look at <b>these</b>")
    for width, colours in ((1280, "light"), (390, "dark")):
        look(page, width, colours)  # type: ignore[arg-type]
        shoot(page, f"composer-refused-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page, ".conversation") == []

    page.get_by_role("button", name="Remove bad⟨U+202E⟩.png").click()
    page.get_by_role("button", name="Remove image.png").click()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".asked")).to_have_text("Look at <b>these</b>")
    assert run not in page.url
    expect(page.get_by_role("list", name="Attached files").first).to_contain_text("onerror")
    assert page.evaluate("window.pwned") is None


@pytest.mark.slow
def test_files_over_the_limit_are_marked_before_they_are_sent(
    site: Site, new_page: NewPage
) -> None:
    _, page = opened(site, new_page)
    files = [{"name": f"{at}.txt", "mimeType": "", "buffer": b"x"} for at in range(102)]
    page.locator("#composer input[type=file]").set_input_files(files)  # type: ignore[arg-type]
    expect(page.locator("#composer .attached .bad")).to_have_count(2)
    page.get_by_role("button", name="Remove 7.txt", exact=True).click()
    expect(page.locator("#composer .attached .bad")).to_have_count(1)


@pytest.mark.slow
def test_an_at_sign_completes_the_name_of_a_file(site: Site, new_page: NewPage) -> None:
    run = site.do("make_run", owner="olga", message="First")
    outputs = site.directory / "workspaces" / site.do("run", run=run)["thread"] / "outputs"
    outputs.mkdir(parents=True)
    for name in ("report.md", "rain report.csv", "<img src=x onerror=window.pwned=1>"):
        (outputs / name).write_text("x")
    page = new_page("olga")
    page.goto(f"/runs/{run}/")
    field = page.get_by_label("Follow-up message")
    field.click()
    field.press_sequentially("Sum up @repo")
    options = page.get_by_role("option")
    expect(options).to_have_text(["/sandbox/outputs/report.md", "/sandbox/outputs/rain report.csv"])
    shoot(page, "composer-names")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(field).to_have_value('Sum up @"/sandbox/outputs/rain report.csv" ')
    field.press_sequentially("and @")
    expect(options).to_have_count(3)
    assert page.evaluate("window.pwned") is None
    assert serious(page, ".conversation") == []
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(field).to_be_focused()
    field.press_sequentially("nosuch")
    expect(page.get_by_text("No file has this name.")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#queued li")).to_have_text(
        ['nextSum up @"/sandbox/outputs/rain report.csv" and @nosuchSend nowRemove']
    )


@pytest.mark.slow
def test_a_queued_message_is_shown_and_can_be_removed(site: Site, new_page: NewPage) -> None:
    run, page = opened(site, new_page, "queued")
    field = page.get_by_label("Follow-up message")
    for text in ("Second <b>", "Third"):
        field.fill(text)
        page.get_by_role("button", name="Send", exact=True).click()
        expect(field).to_have_value("")
    expect(page.locator("#queued li .what")).to_have_text(["Second <b>", "Third"])
    for width, colours in ((1280, "light"), (390, "dark")):
        look(page, width, colours)  # type: ignore[arg-type]
        shoot(page, f"composer-queued-{width}-{colours}")
        assert overflow(page) == 0
    page.get_by_role("button", name="Remove the message Second <b>").click()
    expect(page.locator("#queued li .what")).to_have_text(["Third"])
    third = site.do("newest_run")
    assert site.do("run", run=run)["status"] == "queued"
    site.do("end", run=run, status="completed", events=[])
    site.do("append", run=third, events=[], status="running")
    page.reload()
    expect(page.locator("#queued li")).to_have_text(["runningThirdShow the work"])
    link = page.get_by_role("link", name="Show the work")
    expect(link).to_have_attribute("href", f"/runs/{third}/")


def test_stop_ends_the_run_and_keeps_the_draft(site: Site, new_page: NewPage) -> None:
    run, page = opened(site, new_page, "queued")
    page.get_by_label("Follow-up message").fill("A draft")
    page.evaluate("window.isSamePage = true")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#status")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    expect(page.get_by_label("Follow-up message")).to_have_value("A draft")
    assert page.evaluate("window.isSamePage")
    assert site.do("run", run=run)["status"] == "cancelled"


@pytest.mark.slow
def test_a_failed_run_offers_a_retry(site: Site, new_page: NewPage) -> None:
    run, page = opened(site, new_page, "queued")
    expect(page.get_by_role("button", name="Retry")).to_be_hidden()
    site.do("end", run=run, status="failed", events=[("run.failed", {"message": "Oh"})])
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#status")).to_have_text("queued")
    expect(page.get_by_role("button", name="Retry")).to_be_hidden()
    assert site.do("run", run=run)["status"] == "queued"


@pytest.mark.slow
def test_an_edited_message_starts_a_new_conversation(site: Site, new_page: NewPage) -> None:
    run, page = opened(site, new_page)
    page.get_by_text("Edit and send again").click()
    field = page.get_by_label("Your message")
    expect(field).to_have_value("First")
    for width, colours in zip((1280, 390), COLOURS, strict=True):
        look(page, width, colours)
        shoot(page, f"composer-edit-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page, ".conversation") == []
    field.fill("First, but better")
    field.press("Control+Enter")
    expect(page.locator(".asked")).to_have_text("First, but better")
    assert run not in page.url
    expect(page.locator("#thread li")).to_have_count(1)


@pytest.mark.slow
def test_the_forms_work_without_a_script(site: Site, new_page: NewPage) -> None:
    run = without_sandbox(site)
    page = new_page("olga", scripts=False)
    page.goto(f"/runs/{run}/")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#status")).to_have_text("cancelled")
    page.get_by_label("Follow-up message").fill("Second")
    page.get_by_label("Files for the agent").set_input_files(
        {"name": "a.csv", "mimeType": "", "buffer": b"a,b"}
    )
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".asked")).to_have_text("Second")
    expect(page.get_by_role("list", name="Attached files").first).to_contain_text("a.csv")
    page.get_by_text("Edit and send again").click()
    page.get_by_label("Your message").fill("Other")
    page.get_by_role("button", name="Send in a new conversation").click()
    expect(page.locator(".asked")).to_have_text("Other")


@pytest.mark.slow
def test_the_form_of_the_home_page_keeps_files_after_an_error(
    site: Site, new_page: NewPage
) -> None:
    site.do("make_agent", slug="no-sandbox", model="demo")
    page = new_page("olga")
    page.goto("/?agent=no-sandbox")
    page.get_by_label("What should it do?").fill("Look")
    good: FilePayload = {"name": "a.csv", "mimeType": "", "buffer": b"a,b"}
    bad: FilePayload = {"name": "b.png", "mimeType": "", "buffer": b"no picture"}
    page.locator("#composer input[type=file]").set_input_files([good, bad])
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#composer-problem")).to_have_text("A file was not accepted: see below.")
    assert serious(page, "#composer") == []
    page.get_by_role("button", name="Remove b.png").click()
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".asked")).to_have_text("Look")
    expect(page.get_by_role("list", name="Attached files").first).to_contain_text("a.csv")


@pytest.mark.slow
def test_the_next_message_can_have_another_model_of_the_agent(
    site: Site, new_page: NewPage
) -> None:
    others = [
        {"provider": "anthropic", "model": "claude-haiku-4-5"},
        {"provider": "openai", "model": "<img src=x onerror=window.pwned=1>"},
    ]
    run = site.do("start_scripted", owner="olga", model="demo", fallbacks=others)
    _, page = opened(site, new_page, run=run)
    chosen = page.get_by_label("Model for this message")
    expect(chosen.locator("option")).to_have_text(
        [
            "scripted:demo",
            "anthropic:claude-haiku-4-5",
            "openai:<img src=x onerror=window.pwned=1>",
        ]
    )
    expect(chosen).to_have_value("")
    for width, colours in ((1280, "light"), (390, "dark")):
        look(page, width, colours)  # type: ignore[arg-type]
        shoot(page, f"composer-model-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page, ".conversation") == []
    chosen.select_option("anthropic:claude-haiku-4-5")
    page.get_by_label("Follow-up message").fill("Second")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".asked")).to_have_text("Second")
    expect(page.locator(".run-head")).to_contain_text("claude-haiku-4-5")
    expect(chosen).to_have_value("anthropic:claude-haiku-4-5")
    assert page.evaluate("window.pwned") is None


@pytest.mark.slow
def test_the_next_message_that_waits_is_sent_now(site: Site, new_page: NewPage) -> None:
    run, page = opened(site, new_page, "queued")
    field = page.get_by_label("Follow-up message")
    for text in ("Second <b>", "Third"):
        field.fill(text)
        page.get_by_role("button", name="Send", exact=True).click()
        expect(field).to_have_value("")
    expect(page.locator("#queued li .what")).to_have_text(["Second <b>", "Third"])
    now = page.get_by_role("button", name="Send now")
    expect(now).to_have_count(1)
    expect(now).to_have_attribute("aria-label", "Send now: Second <b>")
    for width, colours in ((1280, "light"), (390, "dark")):
        look(page, width, colours)  # type: ignore[arg-type]
        shoot(page, f"composer-now-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page, ".conversation") == []
    now.click()
    lines = page.locator("#queued li")
    expect(lines.first).to_contain_text("The agent reads it after its current step")
    # The next message can follow it.
    expect(now).to_have_count(1)
    expect(now).to_have_attribute("aria-label", "Send now: Third")
    now.click()
    expect(lines.last).to_contain_text("The agent reads it after its current step")
    assert site.do("run", run=run)["status"] == "queued"


@pytest.mark.slow
def test_a_message_during_the_work_is_shown_between_the_steps(
    site: Site, new_page: NewPage
) -> None:
    joined = {
        "step": 1,
        "waiting_run_id": "01k00000000000000000000000",
        "by": "olga",
        "text": "See <b onclick=x>this</b>\u202e",
        "files": ["/sandbox/user_uploads/<img src=x onerror=window.pwned=1>.csv"],
    }
    run = site.do("make_run", owner="olga", message="First")
    said = [("text.completed", {"part_id": f"{step}.0", "text": f"Step {step}"}) for step in (1, 2)]
    events = [said[0], ("message.joined", joined), said[1]]
    site.do("end", run=run, status="completed", events=events)
    page = new_page("olga")
    for _ in range(2):
        page.goto(f"/runs/{run}/")
        message = page.locator("#transcript .asked")
        expect(message).to_have_text("See <b onclick=x>this</b>⟨U+202E⟩")
        expect(page.locator("#transcript")).to_contain_text("Step 2")
        words = page.locator("#transcript").inner_text()
        assert words.index("Step 1") < words.index("See <b") < words.index("Step 2")
        expect(page.locator("#transcript .event").first).to_contain_text("Attached: /sandbox")
    for width, colours in ((1280, "light"), (390, "dark")):
        look(page, width, colours)  # type: ignore[arg-type]
        shoot(page, f"joined-{width}-{colours}")
        assert overflow(page) == 0
        assert serious(page, ".conversation") == []
    assert page.evaluate("window.pwned") is None

"""Notifications of the browser about new requests, and the number on the icon of the app."""

from __future__ import annotations

import secrets

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.support.runs import wait_until
from tests.support.site import Site

pytestmark = pytest.mark.chromium

RECORD = """
window.shown = [];
window.badges = [];
window.Notification = class extends EventTarget {
    static permission = localStorage.getItem("test-permission") ?? "default";
    static async requestPermission() {
        Notification.permission = window.answer ?? "granted";
        localStorage.setItem("test-permission", Notification.permission);
        return Notification.permission;
    }
    constructor(title, options) { super(); window.shown.push({ title, ...options }); }
    close() {}
};
document.hasFocus = () => false;
navigator.setAppBadge = async (number) => window.badges.push(number);
navigator.clearAppBadge = async () => window.badges.push(0);
"""


@pytest.fixture
def person() -> str:
    return f"nora{secrets.token_hex(4)}"


@pytest.fixture
def queue(site: Site, new_page: NewPage, person: str) -> Page:
    """The queue of a user without requests, in a window without the focus."""
    site.do("make_user", name=person)
    page = new_page(person)
    page.add_init_script(RECORD)
    page.goto("/approvals/")
    return page


def test_a_notification_names_only_the_agent_and_the_tool(
    site: Site, queue: Page, person: str
) -> None:
    run = site.do("make_run", owner=person)
    with queue.expect_response("**/approvals/waiting/"):
        queue.get_by_role("button", name="Notifications: off").click()
        site.do("ask", run=run, tool="send", tool_input={"text": "before"})
    expect(queue.get_by_role("button", name="Notifications: on")).to_be_visible()
    asked = site.do("ask", run=run, tool="execute", tool_input={"command": "cat secret"})
    wait_until(lambda: queue.evaluate("window.shown.length") == 1, "the notification")
    assert queue.evaluate("window.shown") == [
        {
            "title": "Waiting for your approval",
            "body": "Assistant: execute",
            "tag": f"vel-{asked}",
        }
    ]
    wait_until(lambda: queue.evaluate("window.badges.at(-1)") == 2, "the number on the icon")


@pytest.mark.slow
def test_there_is_no_notification_without_the_persons_consent(
    site: Site, queue: Page, person: str
) -> None:
    run = site.do("make_run", owner=person)
    queue.evaluate("window.answer = 'denied'")
    queue.get_by_role("button", name="Notifications: off").click()
    expect(queue.locator(".toast.problem")).to_contain_text("does not allow notifications")
    asked: list[str] = []
    queue.on("request", lambda sent: asked.append(sent.url) if "waiting" in sent.url else None)
    site.do("ask", run=run, tool="execute", tool_input={"command": "ls"})
    expect(queue.locator("#queue .approval").last).to_contain_text("ls")
    assert queue.evaluate("window.shown") == []
    assert asked == []

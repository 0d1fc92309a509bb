"""Makes the pictures of the README: a real `vel up`, the demo on it, and Chromium.

`make screenshots` writes them to docs/pictures/.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
CHROMIUM = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "only-for-the-pictures"  # noqa: S105
MAKE_ADMIN = (
    "import django; django.setup();"
    "from django.contrib.auth import get_user_model as model;"
    f"model().objects.create_superuser('ada', password='{PASSWORD}')"
)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def wait_for(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url)  # noqa: S310  # our own server
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"{url} does not answer")


def take(page: Page, base: str) -> None:
    page.goto(f"{base}/login/")
    page.fill("input[name=username]", "ada")
    page.fill("input[name=password]", PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Run the demo").click()
    page.get_by_text("completed", exact=True).first.wait_for(timeout=120_000)
    page.evaluate("scrollTo(0, 600)")
    page.screenshot(path=PICTURES / "run.png")
    page.goto(f"{base}/admin/agents/run/")
    page.goto(base + str(page.locator("#result_list tbody th a").first.get_attribute("href")))
    page.screenshot(path=PICTURES / "admin.png")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="vel-pictures-", dir="/var/tmp") as data:
        os.chmod(data, 0o711)  # noqa: S103  # workspaces below it are walked to
        environment = {
            **os.environ,
            "VEL_DATA_DIR": data,
            "VEL_PROVIDER": "scripted",
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "velproject.settings",
        }
        command = [sys.executable, "-m", "velproject.cli", "up", "--port", str(port)]
        served = subprocess.Popen(command, env=environment)
        try:
            wait_for(f"http://127.0.0.1:{port}/login/")
            subprocess.run([sys.executable, "-c", MAKE_ADMIN], env=environment, check=True)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path="/usr/bin/chromium", args=CHROMIUM
                )
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                take(page, f"http://127.0.0.1:{port}")
                browser.close()
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait()


if __name__ == "__main__":
    main()

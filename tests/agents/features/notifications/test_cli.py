"""`vel notifications`: targets from the terminal."""

from __future__ import annotations

import pytest

from tests.support.receivers import receiver
from tests.velproject.command import Vel


@pytest.mark.slow
def test_a_webhook_is_added_tested_listed_and_removed(vel: Vel) -> None:
    with receiver([200, 500]) as hook:
        vel.environment["VEL_WEBHOOK_PRIVATE_HOSTS"] = hook.host
        made = vel("notifications", "add-webhook", hook.url)
        assert made.returncode == 0, made.stderr
        assert made.stdout.startswith("whsec_"), "the secret alone, for a script"
        [row] = vel.rows("notifications", "list")
        assert (row["kind"], row["address"], row["agent"]) == ("webhook", hook.url, None)
        assert made.stdout.strip() not in vel("notifications", "list").stdout
        assert vel("notifications", "test", row["id"]).returncode == 0
        failed = vel("notifications", "test", row["id"])
        assert (failed.returncode, "answered 500" in failed.stderr) == (1, True)
        assert hook.received[0].json["type"] == "test"
    assert vel("notifications", "remove", row["id"]).returncode == 0
    assert vel.rows("notifications", "list") == []


@pytest.mark.slow
def test_invalid_values_are_one_line_and_add_nothing(vel: Vel) -> None:
    for arguments in (
        ("add-webhook", "http://127.0.0.1:9/"),
        ("add-webhook", "https://169.254.169.254/"),
        ("add-webhook", "https://hooks.example.org/", "--agent", "nobody"),
        ("add-email", "ada@example.org\nBcc: eve@example.org"),
        ("remove", "01abc"),
    ):
        refused = vel("notifications", *arguments)
        assert refused.returncode == 2, arguments
        assert len(refused.stderr.splitlines()) == 1
    assert vel.count("vel_notifications_notificationtarget") == 0
    mailed = vel("notifications", "add-email", "ada@example.org")
    assert mailed.returncode == 0

"""Failed messages on the pages for operators."""

from __future__ import annotations

import pytest

from agents.features.notifications.models import Notification, NotificationTarget
from agents.features.notifications.status import trouble
from tests.agents.api.rows import make_agent, make_run, make_user
from tests.support.planting import make_row

pytestmark = pytest.mark.django_db

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def test_the_status_of_notifications_has_no_key() -> None:
    make_agent(sandbox=False)
    ann = make_user("ann")
    target = make_row(NotificationTarget, {}, "x")
    for status, error in (("pending", ""), ("pending", "old"), ("given_up", f"no {KEY}")):
        given = {"target": target, "run": make_run(ann), "status": status, "error": error}
        make_row(Notification, given, "x")
    section = trouble()
    assert [value for _, value in section.facts] == ["1", "1"]
    assert section.note == "Last failure: no [secret withheld]"

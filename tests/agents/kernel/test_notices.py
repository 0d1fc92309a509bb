"""Notices to users, and the kinds of targets that deliver them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.features import slack
from agents.kernel import features, notices
from agents.kernel.notices import Message, Notice, NoticeKind, announce, kind_of


class Lunch(NoticeKind):
    type = "lunch.served"
    field = "lunch"

    def is_needed(self, subject_id: str) -> bool:
        return subject_id == "soup"

    def message(self, subject_id: str) -> Message | None:
        return Message({"id": subject_id}, "Lunch", ("It is warm.",))


@pytest.fixture
def feature(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module `notices` of a feature, in a process that has not searched for notices."""
    module: Any = ModuleType("agents.features.slack.notices")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(slack, "notices", module, raising=False)
    monkeypatch.setattr(features, "_absent", set())  # another test may have looked for it
    for name in ("_kinds", "_listeners", "_is_loaded"):
        monkeypatch.setattr(notices, name, type(getattr(notices, name))())
    return module


@pytest.mark.django_db
def test_listeners_of_features_get_notices(feature: Any) -> None:
    heard: list[Notice] = []
    feature.LISTENERS = [heard.append]
    notice = Notice(type="lunch.served", subject_id="soup", agent_id="nobody")
    announce(notice)
    assert heard == [notice]


def test_a_feature_defines_the_content_of_its_notices(feature: Any) -> None:
    feature.KINDS = [Lunch]
    kind = kind_of("lunch.served")
    assert isinstance(kind, Lunch)
    assert kind_of("approval.requested") is not None
    assert kind_of("dinner.served") is None


def test_two_kinds_with_one_type_are_an_error(feature: Any) -> None:
    class Other(Lunch):
        type = "approval.requested"

    feature.KINDS = [Other]
    with pytest.raises(ImproperlyConfigured, match=r"both have type = 'approval\.requested'"):
        kind_of("lunch.served")

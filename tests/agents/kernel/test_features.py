"""Discovery of the parts of installed features."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.checks.features import check_features
from agents.kernel.features import collect, feature_modules, features

CONFIG = """
from agents.kernel.features import FeatureConfig


class OutsideConfig(FeatureConfig):
    name = "outside_feature"
    label = "outside"
    order = 1
    requires = ("agents",)
"""


@pytest.fixture
def outside(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed third-party feature, to which a test adds modules."""
    place = tmp_path / "outside_feature"
    place.mkdir()
    (place / "__init__.py").touch()
    (place / "apps.py").write_text(CONFIG)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "outside_feature"]
    yield place
    for name in [name for name in sys.modules if name.split(".")[0] == "outside_feature"]:
        del sys.modules[name]


def test_features_come_in_their_order(outside: Path) -> None:
    labels = [feature.label for feature in features()]
    assert labels[0] == "outside"
    assert labels.index("vel_slack") < labels.index("vel_google_workspace")


def test_a_list_has_the_entries_of_each_feature(outside: Path) -> None:
    (outside / "lists.py").write_text('LIST = ["a", "b"]')
    assert [(config.label, entry) for config, entry in collect("lists", "LIST")] == [
        ("outside", "a"),
        ("outside", "b"),
    ]


def test_a_feature_needs_no_module_and_no_list(outside: Path) -> None:
    assert collect("nowhere", "LIST") == []
    (outside / "lists.py").touch()
    assert collect("lists", "LIST") == []
    assert check_features(None) == []


def test_a_missing_module_is_looked_for_once(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for = []

    class Finder:
        @staticmethod
        def find_spec(name: str, *args: object) -> None:
            looked_for.append(name)

    collect("nowhere", "LIST")
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert collect("nowhere", "LIST") == []
    assert looked_for == []
    assert collect("nowhere_else", "LIST") == []
    assert "outside_feature.nowhere_else" in looked_for


def test_it_is_looked_for_again_when_other_apps_are_installed(outside: Path, settings: Any) -> None:
    assert collect("lists", "LIST") == []
    (outside / "lists.py").write_text('LIST = ["a"]')
    importlib.invalidate_caches()
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS]
    assert [entry for _, entry in collect("lists", "LIST")] == ["a"]


@pytest.mark.parametrize("line", ["import no_such_module", "1 / 0"])
def test_a_module_that_cannot_be_imported_is_an_error_with_its_name(
    outside: Path, line: str
) -> None:
    (outside / "middleware.py").write_text(line)
    with pytest.raises(ImproperlyConfigured, match=r"outside_feature\.middleware"):
        collect("middleware", "MIDDLEWARE")
    [problem] = check_features(None)
    assert problem.id == "vel.E029"
    assert "The feature outside cannot be used" in problem.msg


def test_a_door_leaves_out_a_broken_feature_and_logs_it(
    outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (outside / "pages.py").write_text("import no_such_module")
    found = [config.label for config, _ in feature_modules("pages", skip_broken=True)]
    assert "vel_credentials" in found
    assert "outside" not in found
    assert "no_such_module" in caplog.text


def test_a_feature_without_an_app_that_it_needs_is_an_error(settings: Any) -> None:
    credentials = "agents.features.credentials"
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != credentials]
    problems = check_features(None)
    assert {problem.id for problem in problems} == {"vel.E029"}
    assert "vel_slack needs the app vel_credentials" in problems[0].msg

"""Hostile packages are quarantined: those used for the tuning, and those kept aside."""

from __future__ import annotations

import pytest

from skills_app.library.scan import has_danger, scan_package
from tests.skills_app.library.scan.hostile import hostile, later

TUNED_WITH = hostile(held=False) | later()
KEPT_ASIDE = hostile(held=True)


@pytest.mark.parametrize("name", sorted(TUNED_WITH))
def test_the_scan_finds_its_tuning_set(name: str) -> None:
    assert has_danger(scan_package(TUNED_WITH[name]))


@pytest.mark.slow
def test_the_scan_finds_most_of_the_held_out_set() -> None:
    found = [name for name, package in KEPT_ASIDE.items() if has_danger(scan_package(package))]
    assert len(KEPT_ASIDE) >= 40
    assert len(found) / len(KEPT_ASIDE) >= 0.9, sorted(set(KEPT_ASIDE) - set(found))

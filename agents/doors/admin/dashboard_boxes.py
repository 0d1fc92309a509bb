"""Boxes that features add to the admin's home page (`admin.DASHBOARD_BOXES`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from agents.kernel.features import collect
from agents.selectors.visible import Person


@dataclass(frozen=True, slots=True)
class DashboardBox:
    """A box for people who can view the rows of `model` in the admin."""

    model: type[Model]
    template: str
    """Its context contains the result of `content` as `box`."""
    content: Callable[[Person], Mapping[str, Any]]


def dashboard_boxes() -> list[DashboardBox]:
    return [box for _, box in collect("admin", "DASHBOARD_BOXES", skip_broken=True)]

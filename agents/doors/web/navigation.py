"""Links in the top bar, in the user menu, and next to each agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import PermissionsMixin
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from agents.kernel.features import collect
from agents.selectors.visible import Person

BAR: Literal["bar"] = "bar"
MENU: Literal["menu"] = "menu"
AGENT: Literal["agent"] = "agent"
"""Pages of one agent: the URL takes its slug."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A link to a page. Entries are sorted by `order`.

    `key` is the second key of its shortcut: g and `key` open the page. `help` is its description in
    the list of shortcuts.
    """

    view: str
    label: str | Promise
    place: Literal["bar", "menu", "agent"] = BAR
    order: int = 1000
    key: str = ""
    help: str | Promise = ""
    counts_waiting: bool = False
    """Whether the link shows the number of pending requests."""
    permission: str = ""
    """Only users with this permission get the link. The page checks it itself."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A line of the list of shortcuts, for a shortcut that a feature's script handles."""

    keys: tuple[str, ...]
    help: str | Promise


def shortcuts() -> list[Shortcut]:
    """Return the shortcuts of features (`pages.SHORTCUTS`)."""
    return [shortcut for _, shortcut in collect("pages", "SHORTCUTS", skip_broken=True)]


_BUILT_IN = (
    NavigationEntry("web:home", _("Home"), order=100, key="h", help=_("home")),
    NavigationEntry("web:history", _("History"), order=300, key="r", help=_("runs: the history")),
    NavigationEntry("web:usage", _("Usage"), order=500, key="u", help=_("usage")),
    NavigationEntry("web:profile", _("Profile"), place=MENU, order=100),
)


def navigation(place: str, user: Person) -> list[NavigationEntry]:
    """Return the links of `user` at `place`, including those of features (`pages.NAVIGATION`)."""
    of_features = [entry for _, entry in collect("pages", "NAVIGATION", skip_broken=True)]
    found = [
        entry
        for entry in (*_BUILT_IN, *of_features)
        if entry.place == place and (not entry.permission or _has(user, entry.permission))
    ]
    return sorted(found, key=lambda entry: entry.order)


def _has(user: Person, permission: str) -> bool:
    return isinstance(user, PermissionsMixin) and user.has_perm(permission)

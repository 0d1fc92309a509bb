"""Ages in words, as in `clock.js`."""

from __future__ import annotations

from datetime import timedelta

from django.utils.translation import gettext


def in_words(age: timedelta) -> str:
    """Return the age as in `clock.js`."""
    minutes = int(age.total_seconds() // 60)
    if minutes < 1:
        return gettext("just now")
    if minutes < 60:
        time = f"{minutes} min"
    elif minutes < 2 * 24 * 60:
        time = f"{minutes // 60} h {minutes % 60} min"
    else:
        time = gettext("%(days)s days") % {"days": minutes // (24 * 60)}
    return gettext("%(time)s ago") % {"time": time}

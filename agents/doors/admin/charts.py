"""Charts as SVG, generated on the server with attributes only, without styles and scripts."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

WIDTH, HEIGHT = 640, 120


def bars(values: Sequence[tuple[str, int, str]], *, limit: int | None = None) -> SafeString:
    """Return a bar for each (label, value, value as text), with a line at `limit`.

    Each bar has a title. The table next to the chart has the same data as text.
    """
    top = max([1, limit or 0, *(value for _, value, _ in values)])
    step = WIDTH / max(len(values), 1)
    drawn = format_html_join(
        "",
        '<rect class="vel-bar" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>',
        (
            (
                f"{number * step + 1:.1f}",
                f"{HEIGHT - HEIGHT * value / top:.1f}",
                f"{max(step - 2, 1):.1f}",
                f"{HEIGHT * value / top:.1f}",
                label,
                words,
            )
            for number, (label, value, words) in enumerate(values)
        ),
    )
    line = SafeString("")
    if limit is not None:
        height = f"{HEIGHT - HEIGHT * limit / top:.1f}"
        line = format_html(
            '<line class="vel-limit" x1="0" x2="{}" y1="{}" y2="{}"><title>{}</title></line>',
            WIDTH,
            height,
            height,
            gettext("limit"),
        )
    return format_html(
        '<svg class="vel-chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img"'
        ' aria-label="{}">{}{}</svg>',
        WIDTH,
        HEIGHT,
        WIDTH,
        HEIGHT,
        gettext("A bar for each window"),
        drawn,
        line,
    )


def meter(used: int, limit: int) -> SafeString:
    """Return a `<meter>` of the used part of a limit."""
    return format_html(
        '<meter min="0" max="{}" low="{}" high="{}" optimum="0" value="{}">{}%</meter>',
        max(limit, 1),
        limit * 80 // 100,
        max(limit - 1, 0),
        min(used, max(limit, 1)),
        used * 100 // max(limit, 1),
    )

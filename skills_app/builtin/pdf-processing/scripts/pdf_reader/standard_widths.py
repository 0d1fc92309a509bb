"""The widths of the standard fonts, which files need not contain, in thousandths of the size."""

from __future__ import annotations

_HELVETICA = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 "
    "556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 "
    "260 334 584"
)
_TIMES = (
    "250 333 408 500 500 833 778 180 333 333 500 564 250 333 250 278 500 500 500 500 500 500 500 "
    "500 500 500 278 278 564 564 564 444 921 722 667 667 722 611 556 722 722 333 389 722 611 889 "
    "722 722 556 722 667 556 611 722 722 944 722 722 611 333 278 333 469 500 333 444 500 444 500 "
    "444 333 500 500 278 278 500 278 778 500 500 500 500 333 389 278 500 500 722 500 500 444 480 "
    "200 480 541"
)
_BOLD = 1.06
"""The width of a bold face relative to the normal one, exact enough to find the ends of words."""


def standard_widths(name: str, codes: dict[int, str]) -> dict[int, float]:
    """Return the width of each code of the font `name`. Accents do not change a width."""
    if "Courier" in name or "Mono" in name:
        return dict.fromkeys(codes, 600.0)
    listed = _TIMES if "Times" in name or "Serif" in name else _HELVETICA
    factor = _BOLD if "Bold" in name else 1.0
    known = {chr(32 + at): float(width) * factor for at, width in enumerate(listed.split())}
    return {code: known.get(text[:1], 556.0 * factor) for code, text in codes.items()}

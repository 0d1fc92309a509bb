"""Where the templates of the pages and of the admin lie: for `DIRS` of a project's TEMPLATES.

They are not found by `APP_DIRS`. Needs no Django, so that settings can import it.
"""

from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_IN_WHEEL = _ROOT / "velproject" / "templates"

PAGE_TEMPLATES = _IN_WHEEL if _IN_WHEEL.is_dir() else _ROOT / "templates"
"""In a wheel they lie inside a package; beside the packages could be somebody else's."""

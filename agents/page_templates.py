"""The directories of the templates and of the translations of pages and admin.

Use them for `DIRS` of a project's TEMPLATES and for LOCALE_PATHS.

`APP_DIRS` does not find them. This module does not need Django, so settings can import it.
"""

from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_IN_WHEEL = _ROOT / "velproject" / "templates"

PAGE_TEMPLATES = _IN_WHEEL if _IN_WHEEL.is_dir() else _ROOT / "templates"
"""In a wheel they are inside a package, because other projects could use the top level."""
PAGE_LOCALE = _ROOT / "velproject" / "locale"
"""The catalogs with the translations of the pages."""

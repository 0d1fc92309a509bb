"""Write the generated files of the reference, or the catalogs of the pages' texts.

`make reference` and `make translations` call this.
"""

from __future__ import annotations

import sys

import django


def main() -> None:
    """Write the files that have changed, and print their names."""
    django.setup()
    if sys.argv[1:2] == ["translations"]:
        from docs_tools import translations  # noqa: PLC0415  # needs Django's apps

        sys.exit(translations.check() if "--check" in sys.argv else translations.write())
    from docs_tools.reference import ROOT, reference_files  # noqa: PLC0415  # needs Django's apps

    for path, content in reference_files().items():
        if not path.exists() or path.read_text() != content:
            path.write_text(content)
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

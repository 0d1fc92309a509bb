"""Write the generated files of the reference: `make reference`."""

from __future__ import annotations

import django


def main() -> None:
    """Write the files that have changed, and print their names."""
    django.setup()
    from docs_tools.reference import ROOT, reference_files  # noqa: PLC0415  # needs Django's apps

    for path, content in reference_files().items():
        if not path.exists() or path.read_text() != content:
            path.write_text(content)
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

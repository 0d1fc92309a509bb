"""`python -m release_tools`, with the packages of requirements/release.txt."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from release_tools.build import build
from release_tools.source import ReleaseError, check_tag, read_source


def main() -> int:
    """Build the release of HEAD. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release_tools")
    parser.add_argument("--output", type=Path, default=Path("dist"), help="the directory (dist)")
    # Without `resolve`: the python of an environment is a link to another one.
    parser.add_argument("--licences-of", type=Path, help="the Python whose licences are listed")
    parser.add_argument("--tag", help="the tag of the release, which must belong to the version")
    given = parser.parse_args()
    checkout = Path.cwd()
    try:
        source = read_source(checkout)
        if given.tag:
            check_tag(given.tag, source, (checkout / "CHANGELOG.md").read_text())
        python = given.licences_of and Path(os.path.abspath(given.licences_of))
        build(checkout, source, given.output, python)
    except ReleaseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    for file in sorted(given.output.iterdir()):
        print(f"{file}: {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

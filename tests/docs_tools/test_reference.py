"""The generated files of the reference are up to date."""

from __future__ import annotations

from docs_tools.reference import ROOT, reference_files


def test_the_generated_files_are_up_to_date() -> None:
    old = [path for path, wanted in reference_files().items() if path.read_text() != wanted]
    assert [str(path.relative_to(ROOT)) for path in old] == [], "run: make reference"

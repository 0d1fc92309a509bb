from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.backends.subjects import ON_DISK, SUBJECTS, Subject


@pytest.fixture(params=sorted(SUBJECTS))
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    """Each backend in turn."""
    home = tmp_path / "files"
    home.mkdir()
    return SUBJECTS[request.param](home)


@pytest.fixture(params=sorted(ON_DISK))
def on_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    """Each backend that keeps files on the host, in turn."""
    home = tmp_path / "files"
    home.mkdir()
    return ON_DISK[request.param](home)

"""Hosts whose directories the accounts of sandboxes can reach."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from sandbox.directories.removal import remove_tree
from tests.support.machines import Machines


@pytest.fixture
def machines(frequent_looks: None) -> Iterator[Machines]:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    made = Path(tempfile.mkdtemp(prefix="vel-hosts-", dir="/var/tmp"))
    made.chmod(0o711)
    yield Machines(made)
    remove_tree(made)

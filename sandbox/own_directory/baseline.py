"""The state that a report compares with, stored on disk until the report is complete.

Several processes may execute a run, one after the other, and a process may die.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from sandbox.own_directory.inventory import Inventory


def keep_baseline(file: Path, found: Inventory) -> None:
    """Store the inventory, unless an earlier one is stored there. Raises OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}-{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w") as stream:
            json.dump(found.to_json(), stream)  # ASCII, because paths may contain lone surrogates
        os.link(temporary, file)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def read_baseline(file: Path) -> Inventory | None:
    """The stored state, or None. Raises OSError, and ValueError if the file is damaged."""
    try:
        data = json.loads(file.read_text())
        return Inventory.from_json(data)
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error

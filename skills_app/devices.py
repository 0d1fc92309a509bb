"""Names that Windows keeps for devices, whatever ending follows."""

from __future__ import annotations

import re

_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\..*)?",
    re.IGNORECASE | re.DOTALL,
)


def is_device(name: str) -> bool:
    """Whether a file of this name cannot be made there."""
    return _DEVICE.fullmatch(name) is not None

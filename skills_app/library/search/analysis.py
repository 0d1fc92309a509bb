"""The version of the analysis of skills, for those who store its results."""

from __future__ import annotations

import hashlib

from skills_app.library.search.query import TABLE
from skills_app.library.search.tokens import FAMILIES, STOP_WORDS

ANALYSIS = hashlib.sha256(
    b"3" + FAMILIES.read_bytes() + STOP_WORDS.read_bytes() + TABLE.read_bytes()
).hexdigest()[:16]
"""Changes with the analysis of a text: 3 is the version of the code and of the language model."""

"""Names and texts with so many combining marks that sorting them would take hours."""

from __future__ import annotations

import time

from skills_app.library.normalise import normalise_name, read_name
from skills_app.library.paths import path_problems
from skills_app.library.search.tokens import fold, words
from skills_app.library.skeleton import skeleton

MARKS = "\u0301\u0327" * 30_000


def test_marks_are_folded_in_linear_time() -> None:
    begun = time.process_time()
    fold("a" + MARKS)
    list(words("a" + MARKS))
    normalise_name("a" + MARKS)
    read_name("a" + MARKS, None)
    path_problems([f"a{MARKS}/b", f"A{MARKS}/b"])
    skeleton("a" + MARKS)
    assert time.process_time() - begun < 5  # under 1 s; quadratic would be a minute

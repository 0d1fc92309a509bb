"""Options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path

import click

_MOST_DAYS = 36_500

persist_option = click.option(
    "--persist",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=True),
    help="Use this SQLite file as the database, instead of DATABASE_URL.",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print only JSON on standard output."
)


class Days(click.IntRange):
    """Option type for a number of days, such as 90 or 90d."""

    def __init__(self, least: int) -> None:
        """Accept numbers from `least` to a hundred years."""
        super().__init__(least, _MOST_DAYS)
        self.least = least

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        found = re.fullmatch(r"([0-9]{1,5})d?", str(value))
        if found is None or not self.least <= int(found[1]) <= _MOST_DAYS:
            self.fail(
                f"expected a number of days from {self.least} to {_MOST_DAYS}, such as 90d.",
                param,
                ctx,
            )
        return int(found[1])

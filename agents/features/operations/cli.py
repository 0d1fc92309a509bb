"""The commands of operations. Each part has its own module with its commands."""

from __future__ import annotations

import click

COMMANDS: tuple[click.Command, ...] = ()

"""The commands of operations. Each part has its own module with its commands."""

from __future__ import annotations

import click

from agents.features.operations.backups.cli import backup, restore
from agents.features.operations.database_move.cli import database
from agents.features.operations.service.cli import service
from agents.features.operations.upgrades.cli import upgrade

COMMANDS: tuple[click.Command, ...] = (backup, database, restore, service, upgrade)

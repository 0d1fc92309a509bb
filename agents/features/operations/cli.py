"""The commands of operations. Each part has its own module with its commands."""

from __future__ import annotations

import click

from agents.features.operations.service.cli import service

COMMANDS: tuple[click.Command, ...] = (service,)

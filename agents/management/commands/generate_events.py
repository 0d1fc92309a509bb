"""`manage.py generate_events`: write the files that are made from the event catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from agents.events.event_docs import generated_files

ROOT = Path(__file__).parents[3]


class Command(BaseCommand):
    help = "Write the page, the JSON schema and the JavaScript of the event types (in a clone)."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        for path, content in generated_files(ROOT).items():
            path.write_text(content)
            self.stdout.write(str(path.relative_to(ROOT)))

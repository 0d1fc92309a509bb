"""The action of `vel schema`."""

from __future__ import annotations

import json

import yaml

from agents.api.schema_document import document_at


def show(*, as_yaml: bool, server: str) -> None:
    """The document alone on standard output."""
    document = document_at(server)
    if as_yaml:
        print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")
    else:
        print(json.dumps(document, indent=2, ensure_ascii=False))

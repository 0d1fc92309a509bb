"""Data as YAML that people can read and compare: the same data is always the same bytes."""

from __future__ import annotations

from typing import Any

import yaml

from agents.hidden_text import visible


class _Dumper(yaml.SafeDumper):
    """Blocks for texts of several lines, escapes for what cannot be seen, no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # items of a list stand to the right of its name

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        self.allow_unicode = visible(text) == text
        try:
            super().write_double_quoted(text, False)
        finally:
            self.allow_unicode = True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if visible(text) != text or "\t" in text:
        style = '"'
    elif "\n" in text:
        # A block begins with its first word, else its indentation would have to be told.
        style = "|" if text[0] not in " \n" else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write_document(data: dict[str, Any]) -> str:
    """`data` as YAML, in its own order, ended by a line feed."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, indent=2)

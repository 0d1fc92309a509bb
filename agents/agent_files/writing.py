"""Data as readable YAML for comparisons: equal data gives equal bytes."""

from __future__ import annotations

from typing import Any

import yaml

from agents.hidden_text import visible


class _Dumper(yaml.SafeDumper):
    """Writes multi-line texts as blocks and invisible characters as escapes, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # indent the items of a list

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
        # A block must start with a word, or its header would need the indentation.
        style = "|" if text[0] not in " \n" else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write_document(data: dict[str, Any]) -> str:
    """Return `data` as YAML in its own order, with a final line feed."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, indent=2)

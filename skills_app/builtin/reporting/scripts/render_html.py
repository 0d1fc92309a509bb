#!/usr/bin/env python3
"""Make one HTML file from a Markdown report, with its pictures inside.

The file loads no scripts and no other addresses; HTML in the report is shown as text.
"""

from __future__ import annotations

import argparse
import base64
import re
import sys
from html import escape
from pathlib import Path

from markdown_blocks import Renderer
from outcome import UNREADABLE, WRONG_CALL, Stop, deliver, input_file, run

MAX_PICTURE = 10 * 1024 * 1024
_KINDS = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
    ".svg": "image/svg+xml", ".webp": "image/webp",
}  # fmt: skip
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1f2933; max-width: 46rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; margin: 1.8em 0 0.5em; }
h1 { font-size: 1.9rem; margin-top: 0; }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto; }
th, td { border: 1px solid #cbd2d9; padding: 0.35em 0.7em; text-align: left; vertical-align: top; }
th { background: #f5f7fa; }
.right { text-align: right; }
.center { text-align: center; }
pre { background: #f5f7fa; padding: 0.8em; overflow-x: auto; }
code { font: 0.92em ui-monospace, monospace; }
blockquote { border-left: 3px solid #9aa5b1; margin-left: 0; padding-left: 1em; color: #3e4c59; }
img { max-width: 100%; }
nav { font-size: 0.95em; background: #f5f7fa; padding: 0.6em 1em; }
@media print { body { max-width: none; margin: 0; } nav { display: none; } }
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="the Markdown file")
    parser.add_argument("--output", required=True, help="such as /sandbox/outputs/report.html")
    parser.add_argument("--title", help="default: the first heading")
    parser.add_argument("--contents", action="store_true", help="a list of the sections above")
    parser.add_argument("--language", default="en", help="such as en or de; default: en")
    given = parser.parse_args()
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", given.language):
        raise Stop(f"--language {given.language} is not a language such as en or de.", WRONG_CALL)
    report = input_file(given.report)
    try:
        text = report.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Stop(f"{given.report} is not UTF-8 text.", UNREADABLE) from None
    missing: list[str] = []
    renderer = Renderer(lambda address: _picture(address, report.parent, missing))
    body = renderer.html(text)
    title = given.title or next((words for _, words, _ in renderer.headings), report.stem)
    contents = _contents(renderer.headings) if given.contents else ""
    page = (
        f'<!doctype html>\n<html lang="{given.language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{contents}{body}\n</body>\n</html>\n"
    )
    deliver(page, given.output, report)
    for each in missing:
        print(f"note: {each}", file=sys.stderr)
    return 0


def _contents(headings: list[tuple[int, str, str]]) -> str:
    links = [
        f'<li><a href="#{escape(name, quote=True)}">{escape(words)}</a></li>'
        for level, words, name in headings
        if level == 2
    ]
    return f"<nav><ul>{''.join(links)}</ul></nav>\n" if links else ""


def _picture(address: str, directory: Path, missing: list[str]) -> str:
    """Return a local picture as a data: address. If it is unavailable, add a note and return ""."""
    if re.match(r"[a-z][a-z0-9+.-]*:", address, re.IGNORECASE) or address.startswith("//"):
        missing.append(f"{address} is not a local file, so the picture is left out.")
        return ""
    file = directory / address
    kind = _KINDS.get(file.suffix.lower())
    if kind is None or not file.is_file():
        missing.append(f"the picture {address} does not exist, or is not one of "
                       f"{', '.join(sorted(_KINDS))}.")  # fmt: skip
        return ""
    if file.stat().st_size > MAX_PICTURE:
        missing.append(f"the picture {address} has more than {MAX_PICTURE:,} bytes.")
        return ""
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


if __name__ == "__main__":
    run(main)

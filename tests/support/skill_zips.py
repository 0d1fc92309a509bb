"""Skill packages in the form of uploads."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from tests.support.skills import skill_text

MARKUP = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
HOSTILE = f"{MARKUP}\"'</textarea></pre>{{{{7*7}}}}\u202e"
"""A value for every field of a package. No page may render it as markup."""
PROGRAM = b"#!/bin/sh\necho <b>beans</b>\n"


def zipped(
    files: Mapping[str, str | bytes] | None = None, name: str = "beans", **fields: str
) -> bytes:
    """Return an archive with `files` below the directory, and a SKILL.md if `files` has none."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        held = {"SKILL.md": skill_text(name, **fields), **(files or {})}
        for path, content in held.items():
            archive.writestr(f"{name}/{path}", content)
    return out.getvalue()


def bomb(size: int = 200_000_000) -> bytes:
    """Return a small archive with one file that unpacks to `size` zeros."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("beans/SKILL.md", skill_text())
        with archive.open("beans/data.bin", "w") as stream:
            for _ in range(size // 1_000_000):
                stream.write(b"\0" * 1_000_000)
    return out.getvalue()


def hostile_files(name: str = "hostile") -> dict[str, str | bytes]:
    """Return a package with markup in every field and file, and lines of a megabyte."""
    head = f"license: '{MARKUP.replace(chr(39), '')}'\nauthor: '<b>x\u00ady</b>'\n"
    head += "tags: ['<i>tag</i>', 'b\"onload=x']\nmetadata:\n  '<u>key</u>': '<s>value</s>'\n"
    description = f"Use\u00ad it. {MARKUP.replace(chr(34), '')}"
    text = (
        f'---\nname: {name}\ndescription: "{description}"\n{head}---\n\n# {HOSTILE}\n\nx\u200by\n'
    )
    return {
        "SKILL.md": text,
        "references/long.md": "".join(f"<b>{number}" for number in range(120_000)),
        "references/page.html": f"<html><body onload=alert(1)>{MARKUP}",
        "assets/picture.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='{MARKUP}'/>",
        "assets/data.bin": bytes(range(256)),
        "scripts/run.sh": PROGRAM,
    }

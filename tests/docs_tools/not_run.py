"""The blocks that no test can run, by page and the start of the block, each with the reason."""

from __future__ import annotations

NOT_RUN: dict[tuple[str, str], str] = {
    ("docs/guides/mcp.md", "import httpx2"): "needs a server",
}

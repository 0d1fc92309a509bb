"""Errors of servers. Messages are for the model and for operators, without secrets."""

from __future__ import annotations


class McpError(Exception):
    """A request failed. `code` is a stable word. `unsure`: it may have been carried out."""

    def __init__(self, message: str, code: str, *, unsure: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.unsure = unsure


class McpMissing(McpError):
    """The package is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "MCP servers need the package mcp, which an operator installs: pip install 'vel[mcp]'",
            "not_installed",
        )

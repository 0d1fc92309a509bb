"""The protocol: connections to servers, definitions of tools, and results.

It uses the package `mcp`. `connection`, `http` and `stdio` import it, and are imported with the
first connection, or before workers start (`preload`).
"""

"""MCP servers whose tools agents can use.

A server is a hostile party whose tools may be useful. A person accepts its tools, word for word,
and agents get no others. Connections run on threads of their own, so that no server keeps the
engine's loop busy.
"""

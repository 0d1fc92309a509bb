"""MCP servers whose tools agents can use.

A server is not trusted, but its tools may be useful. A person accepts its tools, word for word, and
agents get no others. Connections run in separate threads, so that a server cannot block the
engine's loop.
"""

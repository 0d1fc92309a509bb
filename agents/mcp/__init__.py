"""MCP servers as seen from Vel: a hostile party whose tools may be useful.

What a server says of its tools is read here into definitions, which a person pins; what it answers
is read into results. Connections run on threads of their own, so that no server keeps the engine's
loop busy. The package `mcp` speaks the protocol; it is imported when the first connection opens.
"""

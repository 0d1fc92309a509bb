"""Vel as an MCP server: agents as tools of other people's agents, over streamable HTTP.

A door like the API: it knows people by their tokens, and everything it does is a service. Nothing
is kept between two requests, so any web process may answer any of them. The package `mcp` speaks
the protocol; it is imported with the first request.
"""

"""Vel as an MCP server: agents as tools of other people's agents, over streamable HTTP.

The endpoint is a door like the REST API: it authenticates people by their tokens and calls
services. It keeps no state between two requests, so any web process can answer any of them. The
package `mcp` implements the protocol; the first request imports it.
"""

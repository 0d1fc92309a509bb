"""Databases for agents to query: SQLite, DuckDB, PostgreSQL, MySQL; and writes with approval.

Operators define connections in the admin and assign them to agents. Programs and the command line
define their own. The feature adds four tools, the field `databases` of agents, a REST endpoint and
a command.
"""

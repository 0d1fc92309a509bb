"""Agents as YAML files: schema, parsing with line numbers, and writing.

This package uses no rows; `agents.services.agent_definitions.files` does.
"""

"""Agents as YAML files: their form, reading with line numbers, and writing.

Nothing here knows rows; `agents.services.agent_definitions.files` does.
"""

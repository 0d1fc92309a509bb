"""Final answers in the form of a JSON Schema: supported schemas, validation, and prompts.

This package uses no runs or rows.
"""

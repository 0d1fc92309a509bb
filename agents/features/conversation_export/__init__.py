"""Conversations as files: Markdown for people, JSON for programs.

`reading` reads a conversation in parts of limited size. `json_form` and `markdown_form` write them.
"""

"""Skill packages without rows: reading, checking, searching, exporting and unpacking them."""

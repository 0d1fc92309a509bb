"""Rows about the files of threads."""

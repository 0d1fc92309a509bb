"""Toolboxes: Python environments that an operator builds and that commands can only read."""

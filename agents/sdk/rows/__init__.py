"""The rows of a program's agents and sessions."""

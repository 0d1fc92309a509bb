"""Names and limits of connections. The module needs no Django."""

NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_-]{0,62}"
LEAST_SECONDS, MOST_SECONDS = 0.1, 600
"""Of one statement."""
MOST_ROWS = 1_000_000
"""Of one result."""

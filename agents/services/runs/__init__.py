"""Start, wake, cancel and resume runs."""

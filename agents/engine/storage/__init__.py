"""Rows that a driver reads and writes: its lease, the journal and the end of a run."""

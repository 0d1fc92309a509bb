"""Database rows that a driver reads and writes: its lease, the journal, the end of a run."""

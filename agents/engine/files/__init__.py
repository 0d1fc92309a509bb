"""Files of a run's thread."""

"""The files of the thread of a run."""

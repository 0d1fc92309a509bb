"""Models of the files of threads."""

"""Erase threads, and remove what is older than the retention settings allow."""

"""Uploads: accepted file types, and programs that read the files. Uses no database rows."""

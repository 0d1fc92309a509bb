"""The list of a person's conversations: search, pin, rename and archive.

A conversation is a thread. The feature stores what its owner marked: pinned or archived.
"""

"""The list of a person's conversations: search, pin, rename and archive, and their titles.

A conversation is a thread. The feature stores what its owner marked: pinned or archived.
"""

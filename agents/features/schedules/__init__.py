"""Schedules: runs start by the clock, in the name of the owner.

A person makes a schedule on the page Schedules, through the REST API or in the admin, and lists and
pauses them with `vel schedules`. Workers look for what is due. What became of each time is kept.
"""

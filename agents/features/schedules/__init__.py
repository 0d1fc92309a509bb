"""Schedules: runs start by the clock, in the name of the owner.

A person creates a schedule on the page Schedules, through the REST API or in the admin, and lists
and pauses schedules with `vel schedules`. Workers poll for due schedules. The result of each due
time is stored.
"""

"""How the parts of a condition on a call are read: commands, paths and hosts.

Each has two ways to fit. To *permit* it must account for all of what the call says, in the one
form that nobody can read otherwise; to ask or to deny, any part in any reading is enough.
"""

"""Budgets: limits of agents and users, in tokens and US dollars, and requests for more.

The middleware `budgets` reserves the worst case before each model call, and settles it with the
reply. A run that has used up a limit is parked until a person gives more.
"""

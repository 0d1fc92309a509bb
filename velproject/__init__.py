"""The Django project of Vel. No process starts if another package replaces Vel's `agents`."""

from velproject.own_agents import problem

if _found := problem():
    # One line and no traceback: `vel`, `manage.py` and servers import this first.
    raise SystemExit(_found)

"""The Django project of Vel. Its processes refuse to start if `agents` is not Vel's package."""

from velproject.own_agents import problem

if _found := problem():
    # One line instead of a traceback: `vel`, `manage.py` and servers import this package first.
    raise SystemExit(_found)

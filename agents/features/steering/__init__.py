"""Send a waiting message now: it joins the run in progress before the next model call.

It plugs in the middleware `steering`. A message that needs its own run ends the run instead.
"""

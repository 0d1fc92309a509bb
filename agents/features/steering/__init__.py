"""Send a waiting message now: the work stops after its running call, and the message is next.

It plugs in the middleware `steering`, which watches the runs that people started on the web pages.
"""

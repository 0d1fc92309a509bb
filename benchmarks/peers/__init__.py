"""Other harnesses, each in its own virtual environment that is created on first use.

Their dependencies conflict with Vel's. One of them even installs a package called `agents`, as one
of Vel's is.
"""

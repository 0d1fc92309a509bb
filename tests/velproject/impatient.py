"""Settings of commands that would wait long: the command line's own, with less patience.

In seconds: `VEL_TEST_LEASE` is how long a lease is, `VEL_TEST_LOCK` how long SQLite's lock is
waited for. Without them both are as in life.
"""

import os

from velproject.cli.settings import *  # noqa: F403
from velproject.settings import DATABASES, VEL

if "VEL_TEST_LEASE" in os.environ:
    _lease = float(os.environ["VEL_TEST_LEASE"])
    VEL |= {"LEASE_SECONDS": _lease, "HEARTBEAT_SECONDS": _lease / 6}
if "VEL_TEST_LOCK" in os.environ:
    DATABASES["default"]["OPTIONS"]["timeout"] = float(os.environ["VEL_TEST_LOCK"])

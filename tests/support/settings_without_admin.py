"""The settings of tests without the admin. Its import takes half of the time of a start."""

from tests.settings import *  # noqa: F403
from velproject.cli.settings import INSTALLED_APPS  # noqa: F401

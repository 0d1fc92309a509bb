"""The settings of tests without the modules of the admin, whose import takes half of a start."""

from tests.settings import *  # noqa: F403
from velproject.cli.settings import INSTALLED_APPS  # noqa: F401

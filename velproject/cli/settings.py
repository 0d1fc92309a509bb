"""The project's settings for short commands, which do not import the admin modules.

Importing them takes 0.2 s. Everything else is as in `velproject.settings`.
"""

from velproject.settings import *  # noqa: F403
from velproject.settings import INSTALLED_APPS as _ALL

_INSTEAD = {"django.contrib.admin": "django.contrib.admin.apps.SimpleAdminConfig"}
INSTALLED_APPS = [_INSTEAD.get(app, app) for app in _ALL]

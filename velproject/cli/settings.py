"""The project's settings for short commands, without the parts that only a server needs.

The admin imports every admin module, which takes 0.2 s.
"""

from velproject.settings import *  # noqa: F403
from velproject.settings import INSTALLED_APPS as _ALL

_INSTEAD = {"django.contrib.admin": "django.contrib.admin.apps.SimpleAdminConfig"}
INSTALLED_APPS = [_INSTEAD.get(app, app) for app in _ALL]

"""The modules that write titles: each worker may have to."""

from agents.features.conversations.settings import titles_wanted
from agents.kernel.features import Preload

PRELOAD = (Preload(("agents.features.conversations.title_calls",), titles_wanted),)

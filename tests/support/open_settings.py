"""The project's settings for a site with more requests than a person would send."""

from velproject.settings import *  # noqa: F403
from velproject.settings import VEL as _OURS

NO_LIMIT = 0
VEL = {
    **_OURS,
    "API_USER_REQUESTS": NO_LIMIT,
    "API_TOKEN_REQUESTS": NO_LIMIT,
    "API_FAILED_SIGN_INS": NO_LIMIT,
    "SLACK_URL": "http://127.0.0.1:9/",  # a port without a server
    "GOOGLE_TOKEN_URL": "http://127.0.0.1:9/",
}

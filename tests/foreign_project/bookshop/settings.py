"""Settings that differ from Vel's own in all ways that a project's settings may."""

import os
from pathlib import Path

from agents.features import FEATURES
from agents.page_templates import PAGE_TEMPLATES

BASE_DIR = Path(__file__).resolve().parent.parent
DATA = Path(os.environ["BOOKSHOP_DATA"])

SECRET_KEY = "k3#9xw!pQz7m@Lr2vT8b$Nc5yH6dJ4sF0gA1eU"  # for tests only
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
DEBUG = False

INSTALLED_APPS = [
    "library",
    "agents",
    *FEATURES,
    "django_q",
    "channels",
    "rest_framework",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.admin",
]
AUTH_USER_MODEL = "library.Reader"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast, for tests only
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "agents.request_origin.request_origin",
    "django.contrib.messages.middleware.MessageMiddleware",
    "library.middleware.shop_csrf",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.security.SecurityMiddleware",
]
ROOT_URLCONF = "bookshop.urls"
ASGI_APPLICATION = "bookshop.asgi.application"
LOGIN_URL = "/members/sign-in/"
LOGIN_REDIRECT_URL = "/books/"
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
SESSION_COOKIE_NAME = "bookshop_session"
CSRF_COOKIE_NAME = "bookshop_csrf"
CSRF_HEADER_NAME = "HTTP_X_BOOKSHOP_CSRF"

LANGUAGE_CODE = "de"
TIME_ZONE = "Asia/Kathmandu"
USE_TZ = True
USE_THOUSAND_SEPARATOR = True
STATIC_URL = "assets/"
APPEND_SLASH = True

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates", PAGE_TEMPLATES],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _file(name: str) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(DATA / f"{name}.sqlite3"),
        "ATOMIC_REQUESTS": True,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }


DATABASES = {"default": _file("shop"), "stock": _file("stock")}
DATABASE_ROUTERS = ["library.routers.StockRouter"]

# The project's settings for its own views must not affect Vel's.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.BasicAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.PageNumberPagination",
    "PAGE_SIZE": 1,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.BrowsableAPIRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"anon": "1/day"},
    "DATETIME_FORMAT": "%d.%m.%Y",
    "COERCE_DECIMAL_TO_STRING": False,
    "UNAUTHENTICATED_USER": None,
    "EXCEPTION_HANDLER": "library.views.own_errors",
}
CHANNEL_LAYERS = {}
Q_CLUSTER = {
    "name": "bookshop",
    "orm": "default",
    "workers": 1,
    "timeout": 60,
    "retry": 120,
    "poll": 0.1,
}

VEL = {
    "API_FAILED_SIGN_INS": 5,
    "DATA_DIR": DATA / "vel",
    "PROVIDER": "scripted",
    "SCRIPTS_DIR": DATA,
    "SOCKETS": "/live/ws/",
    "TOOLS": [
        "library.tools.find_books",
        "library.tools.lend_book",
        "library.tools.count_copies",
    ],
}

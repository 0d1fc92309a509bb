"""Django settings of the Vel project, from environment variables.

Every default is safe for a server that only this machine reaches. docs/reference/settings.md lists
the variables: `ServerSettings` declares those of this file, and the modules `settings` of the apps
declare those of `VEL`. `velproject.checks` refuses settings that make a server for other machines
unsafe.
"""

from __future__ import annotations

from pathlib import Path

from agents.features.installed import installed_features
from agents.kernel.settings import declarations, read_environment, refuse_duplicates
from agents.page_templates import PAGE_LOCALE, PAGE_TEMPLATES
from velproject import env
from velproject.server_settings import ServerSettings

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.data_dir()

_SERVER = ServerSettings.now()
DEBUG = _SERVER.DEBUG
SECRET_KEY = env.secret_key(DATA_DIR)
ALLOWED_HOSTS = list(_SERVER.ALLOWED_HOSTS)
CSRF_TRUSTED_ORIGINS = list(_SERVER.TRUSTED_ORIGINS)
HTTPS = _SERVER.HTTPS

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "channels",
    "django_q",
    "agents",
    *installed_features(),
    *(["corsheaders"] if _SERVER.CORS_ORIGINS else []),
    "velproject",
]

MIDDLEWARE = [
    "velproject.web.response_headers.response_headers",
    *(["corsheaders.middleware.CorsMiddleware"] if _SERVER.CORS_ORIGINS else []),
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "velproject.web.page_language.page_language",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "agents.request_origin.request_origin",
]

ROOT_URLCONF = "velproject.urls"
ASGI_APPLICATION = "velproject.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PAGE_TEMPLATES],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": env.database(_SERVER.DATABASE_URL, DATA_DIR)}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "agents.auth_backends.AgentApproverBackend",
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "web:home"
LOGOUT_REDIRECT_URL = "login"

# Only pages are translated: velproject/web/page_language.py.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [PAGE_LOCALE]
LANGUAGE_COOKIE_NAME = "vel_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = HTTPS
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
# Serve static files straight from the packages, so that `collectstatic` is not needed.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = _SERVER.HSTS_SECONDS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Pages of other origins use the API with a token: no session is sent or set.
CORS_ALLOWED_ORIGINS = list(_SERVER.CORS_ORIGINS)
CORS_ALLOW_CREDENTIALS = False
CORS_URLS_REGEX = r"^/api/v1/"
CORS_ALLOW_METHODS = ["DELETE", "GET", "PATCH", "POST", "PUT"]
CORS_ALLOW_HEADERS = [
    "accept",
    "ai-sdk-version",
    "authorization",
    "content-type",
    "idempotency-key",
    "if-match",
    "last-event-id",
    "user-agent",
]
CORS_EXPOSE_HEADERS = [
    "content-disposition",
    "etag",
    "location",
    "retry-after",
    "www-authenticate",
    "x-vercel-ai-ui-message-stream",
]

# Vel sends no messages through it: all state is in the database. Apps of VEL_APPS may use it.
CHANNEL_LAYERS = env.channel_layers(_SERVER.REDIS_URL)

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "agents.doors.rest.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "EXCEPTION_HANDLER": "agents.doors.rest.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

WORKERS = _SERVER.WORKERS
Q_CLUSTER = {
    "name": _SERVER.QUEUE,
    "orm": "default",
    "workers": WORKERS,
    # Measured: with these values, workers take a task within 50 ms and lose no task if a cluster is
    # killed. Leases and the sweeper retry runs, because they know the completed steps.
    "poll": 0.1,
    "queue_limit": 1,
    "bulk": 1,
    "timeout": 60,
    "retry": 120,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
    "guard_cycle": 0.5,
    "recycle": 0,
    "broker_class": "agents.queues.TaskQueue",
}

# Connections of one web process at the same time: docs/reference/limits.md.
CONNECTIONS = _SERVER.CONNECTIONS

_OWN_APPS = INSTALLED_APPS[INSTALLED_APPS.index("agents") : INSTALLED_APPS.index("velproject")]
_DECLARED = declarations(_OWN_APPS)
refuse_duplicates([*_DECLARED, ServerSettings])
_READ = read_environment(_DECLARED)
VEL = {**_READ["VEL"], "DATA_DIR": DATA_DIR, "CHECK_EVENTS": DEBUG}
globals().update({name: values for name, values in _READ.items() if name != "VEL"})

# Several machines on one database: docs/operations/scaling.md.
if VEL.get("HOST"):
    Q_CLUSTER["broker_class"] = "agents.queues.MachineQueue"
STORAGES = env.storages(_SERVER.STORAGE_URL)

_MAIL = env.mail_server(_SERVER.EMAIL_URL)
EMAIL_HOST = _MAIL["EMAIL_HOST"]
EMAIL_PORT = _MAIL["EMAIL_PORT"]
EMAIL_HOST_USER = _MAIL["EMAIL_HOST_USER"]
EMAIL_HOST_PASSWORD = _MAIL["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS = _MAIL["EMAIL_USE_TLS"]
EMAIL_USE_SSL = _MAIL["EMAIL_USE_SSL"]
DEFAULT_FROM_EMAIL = _SERVER.EMAIL_FROM

LOG_FORMAT = _SERVER.LOG_FORMAT
LOG_LEVEL = _SERVER.LOG_LEVEL.upper()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "velproject.logs.LineFormatter"},
        "json": {"()": "velproject.logs.JsonFormatter"},
    },
    "filters": {"database_away": {"()": "velproject.logs.DatabaseAway"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["database_away"],
        },
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # These log each of their requests or tasks at INFO.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}

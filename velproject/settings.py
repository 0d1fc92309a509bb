"""Django settings of the Vel project, from environment variables.

Every default is safe for a server that only this machine reaches; docs/settings.md lists the
variables. What makes a wider deployment unsafe is refused by `velproject.checks`.
"""

from __future__ import annotations

from pathlib import Path

from agents.features import installed_features
from agents.page_templates import PAGE_TEMPLATES
from velproject import env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.data_dir()

DEBUG = env.boolean("VEL_DEBUG")
SECRET_KEY = env.secret_key(DATA_DIR)
ALLOWED_HOSTS = env.items("VEL_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.items("VEL_TRUSTED_ORIGINS", [])
HTTPS = env.boolean("VEL_HTTPS")

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
    "skills_app",
    "memory",
    *installed_features(),
    "velproject",
]

MIDDLEWARE = [
    "velproject.response_headers.response_headers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
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

DATABASES = {"default": env.database(env.text("DATABASE_URL"), DATA_DIR)}

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

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
# Pages are served straight from the packages, so that nothing has to be collected first.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = env.integer("VEL_HSTS_SECONDS", 0)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# The database is the truth, so one process's memory is enough for what Channels itself passes on.
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "agents.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "EXCEPTION_HANDLER": "agents.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

WORKERS = env.integer("VEL_WORKERS", 2, at_least=1)
Q_CLUSTER = {
    "name": env.text("VEL_QUEUE", "vel"),
    "orm": "default",
    "workers": WORKERS,
    # Measured: these pick up a wake-up within 50 ms, lose no task to a killed cluster, and leave
    # retrying to the lease and the sweeper, which know what was done.
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

# That one web process has open at once: docs/limits.md.
CONNECTIONS = env.integer("VEL_CONNECTIONS", 2_000, at_least=1)

# Several machines on one database: docs/scaling.md.
HOST = env.host_name("VEL_HOST")
if HOST:
    Q_CLUSTER["broker_class"] = "agents.queues.HostQueue"
STORAGES = env.storages(env.text("VEL_STORAGE_URL"))

VEL = {
    **env.run_settings(),
    "CHECK_EVENTS": DEBUG,
    "DATA_DIR": DATA_DIR,
    "HOST": HOST,
    "SHARED_WORKSPACES": env.boolean("VEL_SHARED_WORKSPACES"),
    "HOST_DEAD_AFTER": env.integer("VEL_HOST_DEAD_AFTER", 0),
    "RUNS_PER_WORKER": env.integer("VEL_RUNS_PER_WORKER", 32, at_least=1),
    "FORK_BYTES": env.integer("VEL_FORK_BYTES", 10 * 1024**3),
    "SLACK_URL": env.text("VEL_SLACK_URL", "https://slack.com/api/"),
    "GMAIL_URL": env.text("VEL_GMAIL_URL", "https://gmail.googleapis.com/"),
    "CALENDAR_URL": env.text("VEL_CALENDAR_URL", "https://www.googleapis.com/calendar/v3/"),
    "GOOGLE_AUTH_URL": env.text(
        "VEL_GOOGLE_AUTH_URL", "https://accounts.google.com/o/oauth2/v2/auth"
    ),
    "GOOGLE_CLIENT_ID": env.text("VEL_GOOGLE_CLIENT_ID"),
    "GOOGLE_CLIENT_SECRET": env.text("VEL_GOOGLE_CLIENT_SECRET"),
    "GOOGLE_TOKEN_URL": env.text("VEL_GOOGLE_TOKEN_URL", "https://oauth2.googleapis.com/token"),
    "TRUSTED_PROXIES": env.integer("VEL_TRUSTED_PROXIES", 0),
    "SIGN_INS": env.integer("VEL_SIGN_INS", 10),
    "ADDRESS_SIGN_INS": env.integer("VEL_ADDRESS_SIGN_INS", 60),
    "API_USER_REQUESTS": env.integer("VEL_API_USER_REQUESTS", 1_200),
    "API_TOKEN_REQUESTS": env.integer("VEL_API_TOKEN_REQUESTS", 600),
    "API_FAILED_SIGN_INS": env.integer("VEL_API_FAILED_SIGN_INS", 60),
    "CONNECTIONS_PER_USER": env.integer("VEL_CONNECTIONS_PER_USER", 100),
    "CONNECTIONS_PER_TOKEN": env.integer("VEL_CONNECTIONS_PER_TOKEN", 50),
    "PUBLIC_URL": env.public_url("VEL_PUBLIC_URL", "http://127.0.0.1:8000"),
    "WEBHOOK_PRIVATE_HOSTS": tuple(env.items("VEL_WEBHOOK_PRIVATE_HOSTS", [])),
    "MCP_PRIVATE_HOSTS": tuple(env.items("VEL_MCP_PRIVATE_HOSTS", [])),
    "UPLOAD_TYPES": tuple(
        env.items("VEL_UPLOAD_TYPES", ["text", "data", "office", "pdf", "image", "archive"])
    ),
    "KEEP_THREADS": env.integer("VEL_KEEP_THREADS", 0),
    "KEEP_NOTIFICATIONS": env.integer("VEL_KEEP_NOTIFICATIONS", 30),
    "KEEP_TOKENS": env.integer("VEL_KEEP_TOKENS", 90),
    "KEEP_FAILED_TASKS": env.integer("VEL_KEEP_FAILED_TASKS", 30),
    "KEEP_AUDIT": env.integer("VEL_KEEP_AUDIT", 0),
    "PRUNE_HOURS": env.integer("VEL_PRUNE_HOURS", 0),
    "METRICS_TOKEN": env.text("VEL_METRICS_TOKEN"),
    "SCRIPTS_DIR": env.text("VEL_SCRIPTS_DIR") or None,
}

VEL_SKILLS = env.skill_settings()

_MAIL = env.mail_server(env.text("EMAIL_URL"))
EMAIL_HOST = _MAIL["EMAIL_HOST"]
EMAIL_PORT = _MAIL["EMAIL_PORT"]
EMAIL_HOST_USER = _MAIL["EMAIL_HOST_USER"]
EMAIL_HOST_PASSWORD = _MAIL["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS = _MAIL["EMAIL_USE_TLS"]
EMAIL_USE_SSL = _MAIL["EMAIL_USE_SSL"]
DEFAULT_FROM_EMAIL = env.text("VEL_EMAIL_FROM", "vel@localhost")

LOG_FORMAT = env.choice("VEL_LOG_FORMAT", ("line", "json"))
LOG_LEVEL = env.text("VEL_LOG_LEVEL", "INFO").upper()
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
        # These log each request they make or task they take at INFO.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}

"""Settings of the one environment there is. What differs between machines comes from clawpanel.env."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONCE, NONE, SELF
from django.templatetags.static import static
from django.utils.translation import gettext_lazy as _

from apps.core import valkey
from clawpanel import brokers, databases, env, keys
from clawpanel.up import places

BASE_DIR = env.BASE_DIR


def allowed_hosts() -> list[str]:
    """Names the panel answers to. Bound to every address without being told a name, it cannot know them."""
    if env.BIND in {"0.0.0.0", "::", ""} and not (env.PUBLIC_URL or env.ALLOWED_HOSTS):  # noqa: S104 (a comparison)
        return ["*"]
    named = [env.BIND, urlsplit(env.PUBLIC_URL).hostname or ""]
    return [*env.ALLOWED_HOSTS, *filter(None, named), "localhost", "127.0.0.1", "[::1]"]


DEBUG = env.DEBUG
SECRET_KEY = keys.secret_key()
ENCRYPTION_KEYS = keys.encryption_keys()
PUBLIC_URL = (env.PUBLIC_URL or f"http://{env.BIND}:{env.PORT}").rstrip("/")
ALLOWED_HOSTS = allowed_hosts()
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if env.PUBLIC_URL else []
ROOT_URLCONF = "clawpanel.urls"
ASGI_APPLICATION = "clawpanel.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"

# What the apps need to know of this install; they read it through django.conf.settings.
CLAWPANEL_HOME = env.HOME
CLAWPANEL_INSTALL = keys.install_name()
CLAWPANEL_EXECUTOR = env.EXECUTOR
CLAWPANEL_NODE = env.NODE
CLAWPANEL_NODE_SLOTS = env.NODE_SLOTS
CLAWPANEL_POISON_DEATHS = env.POISON_DEATHS
CLAWPANEL_NODE_LABELS = env.NODE_LABELS
CLAWPANEL_DOCKER_URL = env.DOCKER_URL
CLAWPANEL_DOCKER_CERTS = env.DOCKER_CERTS
CLAWPANEL_RUNNER_BASE = env.RUNNER_BASE
CLAWPANEL_ISOLATION = env.ISOLATION
CLAWPANEL_DEMO_PORT = env.DEMO_PORT
CLAWPANEL_DEMO_SITE = env.DEMO_SITE
CLAWPANEL_SPIDER_REPO = env.SPIDER_REPO
CLAWPANEL_BUILD_ENV = env.build_environment()

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.guardian",
    # Without autodiscovery, which clawpanel.urls does: workers and beat need no admin pages.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
    "guardian",
    "allauth",
    "allauth.account",
    "csp",
    "django_htmx",
    "clawpanel",
    "apps.core",
    "apps.accounts",
    "apps.spiders",
    "apps.runs",
    "apps.jobs",
    "apps.api",
    "apps.panel",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "apps.panel.middleware.LoosePolicyMiddleware",
    "apps.panel.middleware.PreferencesMiddleware",
    "apps.panel.middleware.PanelErrorMiddleware",
    # Synchronous only and last: the whole chain then hops to a thread once instead of at every layer.
    "apps.panel.middleware.single_hop",
]

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "csp.context_processors.nonce",
                "apps.panel.context.frame",
            ],
        },
    },
]

DATABASES = {"default": databases.from_url(env.DATABASE_URL or places.postgres_url(env.HOME), pool=env.DATABASE_POOL)}
# Hints, live lines and caches follow this one URL, a Sentinel's master too; only Celery may be sent elsewhere.
REDIS_URL = env.REDIS_URL or places.valkey_url(env.HOME)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": [REDIS_URL],  # a list: a string would be cut at the semicolons between Sentinels
        # Only the brake of the API counts here: it is not worth waiting for.
        "OPTIONS": {
            "pool_class": "apps.core.valkey.CachePool",
            "socket_timeout": 0.5,
            "socket_connect_timeout": 0.5,
        },
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [valkey.channel_host(REDIS_URL)]},
    }
}

CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = brokers.celery(env.BROKER_URL or REDIS_URL)
# A request that sends a hint waits no longer than this for a broker that is gone.
CELERY_BROKER_CONNECTION_TIMEOUT = 2
CELERY_BROKER_HEARTBEAT = 20  # RabbitMQ only: a host that vanished is noticed within 40 s
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "apps.jobs.beat:ClawScheduler"
CELERY_BEAT_SCHEDULE = {
    "runs.sweep": {"task": "runs.sweep", "schedule": timedelta(seconds=15), "options": {"expires": 30}},
    "jobs.start_repairs": {
        "task": "jobs.start_repairs",
        "schedule": timedelta(seconds=15),
        "options": {"expires": 30},
    },
    "jobs.prepare": {"task": "jobs.prepare", "schedule": timedelta(seconds=15), "options": {"expires": 30}},
    "jobs.settle_batches": {
        "task": "jobs.settle_batches",
        "schedule": timedelta(seconds=15),
        "options": {"expires": 30},
    },
    "runs.keep_partitions": {"task": "runs.keep_partitions", "schedule": timedelta(hours=6)},
}
DJANGO_CELERY_BEAT_TZ_AWARE = True

AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
    "guardian.backends.ObjectPermissionBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
GUARDIAN_RAISE_403 = False
ANONYMOUS_USER_NAME = None
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "apps.accounts.adapter.ClosedAccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# Failed sign-ins are counted by address: the visitor's, not that of the proxy they all come through. Without a proxy
# the header is the visitor's own invention and not looked at.
ALLAUTH_TRUSTED_PROXY_COUNT = env.PROXIES
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_SESSION_REMEMBER = True
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.PUBLIC_URL.startswith("https://")
if env.PUBLIC_URL.startswith("https://"):
    # The proxy that ends TLS says so; without it Django takes its own address for http and refuses the forms.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Pages of others' making: their scripts and styles stand in the page. Nothing of them leads to another site, though.
CLAWPANEL_LOOSE_PAGES = ("/admin/", "/api/docs/")
CLAWPANEL_LOOSE_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
CONTENT_SECURITY_POLICY = {
    "EXCLUDE_URL_PREFIXES": CLAWPANEL_LOOSE_PAGES,
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
# Vendored files carry their version in their name: browsers may keep them for good.
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/vendor/[^/]+-[0-9.]+\.min\."
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.accounts.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["apps.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "apps.api.errors.exception_handler",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "apps.api.negotiation.LenientNegotiation",
    "DEFAULT_THROTTLE_CLASSES": ["apps.api.throttles.UserThrottle"],
    "URL_FORMAT_OVERRIDE": None,
    "UNICODE_JSON": True,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
KNOX_TOKEN_MODEL = "accounts.ApiToken"  # noqa: S105 (a model's name)
REST_KNOX = {
    "TOKEN_TTL": timedelta(days=90),
    "AUTO_REFRESH": False,
    "AUTH_HEADER_PREFIX": "Token",
    "TOKEN_PREFIX": "claw_",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "ClawPanel API",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "apps.api.schema.add_refusals"],
    "ENUM_NAME_OVERRIDES": {
        "StateEnum": "apps.runs.states.State",
        "TriggerEnum": "apps.runs.states.Trigger",
        "LevelEnum": "apps.runs.states.Level",
        "SpiderKindEnum": "apps.spiders.models.Spider.Kind",
        "BatchKindEnum": "apps.runs.models.Batch.Kind",
        "HookKindEnum": "apps.jobs.models.Hook.Kind",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "ClawPanel",
    "SITE_HEADER": "ClawPanel",
    "SITE_URL": "/",
    "SITE_SYMBOL": "bug_report",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("icon.svg")}],
    "SHOW_LANGUAGES": True,
    "LANGUAGES": {"action": "/preferences/"},
    "SHOW_HISTORY": True,
    "SIDEBAR": {"show_search": False, "navigation": "apps.panel.navigation.admin_sidebar"},
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 254.6)",
            "100": "oklch(93.2% .032 255.6)",
            "200": "oklch(88.2% .059 254.1)",
            "300": "oklch(80.9% .105 251.8)",
            "400": "oklch(70.7% .165 254.6)",
            "500": "oklch(58% .17 254)",
            "600": "oklch(52% .165 254)",
            "700": "oklch(46% .15 255)",
            "800": "oklch(40% .13 256)",
            "900": "oklch(36% .11 257)",
            "950": "oklch(28% .09 258)",
        },
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "apps.core.log_masks.MaskingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": env.LOG_LEVEL},
    "loggers": {
        # Named so that it loses the handlers Django gives it, which know nothing of secrets.
        "django": {"level": "INFO"},
        "django.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        "amqp": {"level": "WARNING"},
        "urllib3": {"level": "WARNING"},
        "docker": {"level": "WARNING"},
    },
}

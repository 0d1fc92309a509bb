"""The settings of the reusable apps: one `VEL` dictionary in Django's settings, with defaults.

Every key is optional. `settings.VEL = {"RUNS_PER_WORKER": 8}` changes one and keeps the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


@dataclass(frozen=True)
class VelSettings:
    """`settings.VEL`, typed. Times are seconds, sizes are bytes."""

    DATA_DIR: Path = Path("/var/lib/vel")
    """Workspaces lie below it; an account that Vel drops to must be able to walk there."""
    HOST: str = ""
    """This machine's name, where several work on one database (docs/scaling.md). Empty: one does
    everything."""
    SHARED_WORKSPACES: bool = False
    """All hosts have the same data directory: any of them goes on with any thread."""
    HOST_BEAT_SECONDS: float = 5.0
    """How often each of several hosts says that it lives."""
    HOST_DEAD_AFTER: float = 0.0
    """The others declare a host dead that was silent for so long. 0: only the operator does."""
    RUNS_PER_WORKER: int = 32
    """Runs that one worker process drives at once; it leaves the rest to others."""
    LEASE_SECONDS: float = 30.0
    """How long a run stays with a worker that does not renew its lease."""
    HEARTBEAT_SECONDS: float = 5.0
    SWEEP_SECONDS: float = 5.0
    """How often each process looks for runs that nobody drives."""
    PROVIDER: str = ""
    """Of agents that name none. Empty: anthropic with a key or a base URL, else scripted."""
    MODEL: str = ""
    """Of agents that name none. Empty: the provider's default."""
    ANTHROPIC_API_KEY: str = ""
    ANTHROPIC_BASE_URL: str = ""
    OPENAI_API_KEY: str = ""
    OPENAI_BASE_URL: str = ""
    GOOGLE_API_KEY: str = ""
    GOOGLE_BASE_URL: str = ""
    MODEL_IDLE_SECONDS: float = 120.0
    """A model stream that is silent for so long is given up and the call made again."""
    MODEL_ATTEMPTS: int = 6
    """How often one model call is tried before the run fails."""
    RETRY_BASE_SECONDS: float = 1.0
    """The first pause before a model call is made again; it doubles each time, up to a minute."""
    FALLBACK_WITHOUT_KEY: bool = False
    """A model whose key is missing or refused counts as down: the agent's next model goes on."""
    MESSAGE_BYTES: int = 1_000_000
    """The longest message that a person may send."""
    RESULT_BYTES: int = 20_000_000
    """The longest tool result that is kept, in a file; more is cut, and the result says so."""
    EVICT_BYTES: int = 60_000
    """A longer result goes to a file; the model gets its head and tail. Less in small windows."""
    CONTEXT_WINDOW: int = 200_000
    """Tokens, for models whose window neither the data file nor their server tells."""
    COMPACT_AT: float = 0.8
    """The part of what a prompt may have at which the conversation is made shorter."""
    CLIP_TO: float = 0.5
    """If cutting old texts makes the prompt this part of it or less, nothing is summarised."""
    KEEP_RECENT: float = 0.2
    """The part of it that the last turns may take, which stay as they are."""
    SUMMARY_TOKENS: int = 4_000
    """The longest summary. Less in small windows."""
    WORKSPACE_RETENTION_DAYS: int = 90
    """`vel workspaces prune` removes files of threads that have been quiet for so long."""
    KEEP_THREADS: int = 0
    """Days; `vel prune` removes threads that have been quiet for so long. 0: kept for ever."""
    KEEP_NOTIFICATIONS: int = 30
    """Days; of notifications that have been sent or given up. 0: as long as their request."""
    KEEP_TOKENS: int = 90
    """Days; of API tokens that have expired or were revoked. 0: for ever."""
    KEEP_FAILED_TASKS: int = 30
    """Days; of the queue's own rows on tasks that failed. 0: for ever."""
    KEEP_AUDIT: int = 0
    """Days; of entries of the audit log. 0: for ever."""
    PRUNE_HOURS: int = 0
    """How often workers do what `vel prune --apply` does. 0: never by themselves."""
    SNAPSHOT_TURNS: int = 50
    """So many turns of a thread that changed its files can be looked at and restored."""
    SNAPSHOT_BYTES: int = 1024**3
    """What the snapshots of one thread may take on disk; the oldest go first."""
    UPLOAD_BYTES: int = 50_000_000
    """What people may upload into one thread, in all."""
    UPLOAD_FILES: int = 100
    """How many files they may upload into one thread."""
    RESERVE_BYTES: int = 100_000_000
    """Free space on the disk of the data directory that active runs need: with less, no new run
    starts (docs/limits.md). 0: no reserve."""
    FORK_BYTES: int = 10 * 1024**3
    """What the forks that one person has may have copied, in all. 0: any number."""
    UPLOAD_TYPES: tuple[str, ...] = ("text", "data", "office", "pdf", "image", "archive")
    """Families of files that are taken (docs/uploads.md); `other` takes all else as bytes."""
    DOCUMENTS_TOOLBOX: str = "documents"
    """The toolbox whose Python reads office files, PDFs and pictures. Empty: nothing does."""
    IMAGE_MODELS: tuple[str, ...] = ()
    """Models that take pictures though neither the data file nor their server says so."""
    PUBLIC_URL: str = "http://127.0.0.1:8000"
    """Where people reach the pages: links in notifications begin with it."""
    SOCKETS: str = "/ws/"
    """Where browsers find the sockets of the pages: below a path that a project has chosen."""
    SECRET_KEYS: tuple[str, ...] = field(default=(), repr=False)
    """Encrypt what `agents.secret_text` stores: the first writes, all read. Empty: SECRET_KEY."""
    SLACK_URL: str = "https://slack.com/api/"
    """Where Slack's Web API is."""
    GMAIL_URL: str = "https://gmail.googleapis.com/"
    """Where the Gmail API is: before `gmail/v1/`."""
    CALENDAR_URL: str = "https://www.googleapis.com/calendar/v3/"
    """Where the Google Calendar API is."""
    GOOGLE_TOKEN_URL: str = "https://oauth2.googleapis.com/token"  # noqa: S105  # an address
    """Where access tokens for both are asked for."""
    GOOGLE_AUTH_URL: str = "https://accounts.google.com/o/oauth2/v2/auth"
    """Where people consent to what agents may do in their name."""
    GOOGLE_CLIENT_ID: str = ""
    """The OAuth client with which people connect Google by consent. Empty: they paste a key."""
    GOOGLE_CLIENT_SECRET: str = field(default="", repr=False)
    """Of that client."""
    TRUSTED_PROXIES: int = 0
    """Proxies in front of the web servers, each of which appends to X-Forwarded-For."""
    SIGN_INS: int = 10
    """How often a minute a name may be tried to sign in from one address. 0: any number."""
    ADDRESS_SIGN_INS: int = 60
    """How often a minute one address may try to sign in, with all names together. 0: any number."""
    API_USER_REQUESTS: int = 1_200
    """Requests to the API that a person may send in a minute, by all tokens and pages. 0: any."""
    API_TOKEN_REQUESTS: int = 600
    """Those that one token may send in a minute. 0: any number."""
    API_FAILED_SIGN_INS: int = 60
    """Bad tokens from one address in a minute that are told so; more get 429. 0: any number."""
    WEBHOOK_PRIVATE_HOSTS: tuple[str, ...] = ()
    """`host` or `host:port`: where webhooks may go though it is not public, also over http."""
    MCP_PRIVATE_HOSTS: tuple[str, ...] = ()
    """`host` or `host:port`: where MCP servers may be though it is not public, also over http."""
    GUARDRAILS: tuple[str, ...] = ()
    """Dotted paths of guardrails that agents can choose (docs/guards.md)."""
    GUARDRAIL_ATTEMPTS: int = 3
    """The run fails when so many of its answers were blocked."""
    HOOKS: tuple[str, ...] = ()
    """Dotted paths of hooks, which are told what every run does."""
    STREAMS_PER_USER: int = 32
    """Event streams over HTTP that one person may have open in one web process."""
    CONNECTIONS_PER_USER: int = 100
    """WebSockets, event streams, downloads and waiting MCP calls of one person in one web process.
    0: any number."""
    CONNECTIONS_PER_TOKEN: int = 50
    """The same for one API token. 0: any number."""
    TOOLS: tuple[str, ...] = ()
    """Dotted paths of tools that agents can name (docs/python.md)."""
    SCRIPTS_DIR: Path | None = None
    """Where workers find scripts of the scripted model (`file:NAME`). None: they play no files."""
    METRICS_TOKEN: str = field(default="", repr=False)
    """Who sends it as `Authorization: Bearer` may scrape `/metrics`. Empty: nobody, none are."""
    STUCK_REPEATS: int = 3
    """A run that repeats itself so often is told so. 0: never."""
    CHECK_EVENTS: bool = False
    """Checks the values of each event against the event catalogue before it is written."""
    ALLOW_UNSANDBOXED: bool = False
    """Allows a bare shell in the command line tool. Never as root, never in workers."""

    @property
    def sandbox_reserve(self) -> int:
        """Free space at which file tools and commands stop writing. It is more than the reserve,
        because a command can write for a moment before it is killed."""
        return 2 * self.RESERVE_BYTES

    @property
    def pins_threads(self) -> bool:
        """Whether the files of a thread lie on one of several machines."""
        return bool(self.HOST) and not self.SHARED_WORKSPACES

    @property
    def workspaces(self) -> Path:
        return self.DATA_DIR / "workspaces"

    @property
    def archives(self) -> Path:
        return self.DATA_DIR / "archives"

    @property
    def snapshots(self) -> Path:
        return self.DATA_DIR / "snapshots"

    @property
    def set_aside(self) -> Path:
        """Workspaces that went on elsewhere while this machine was away."""
        return self.DATA_DIR / "set-aside"

    @property
    def mirrors(self) -> Path:
        """Copies of other hosts' workspaces, for people to look at."""
        return self.DATA_DIR / "mirrors"

    @property
    def toolboxes(self) -> Path:
        return self.DATA_DIR / "toolboxes"


@lru_cache(maxsize=1)
def vel_settings() -> VelSettings:
    """The settings in force. An unknown key is an error that names the known ones."""
    given = getattr(settings, "VEL", {})
    known = {known.name for known in fields(VelSettings)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ImproperlyConfigured(
            f"settings.VEL has unknown keys {', '.join(unknown)}; "
            f"known are {', '.join(sorted(known))}."
        )
    paths = {name: Path(given[name]) for name in ("DATA_DIR", "SCRIPTS_DIR") if given.get(name)}
    return VelSettings(**{**given, **paths})


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "VEL":
        vel_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="agents.conf")

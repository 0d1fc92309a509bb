"""The settings of the app `agents`, one module for each area. See `agents.kernel.settings`."""

from agents.settings.conversations import ContextSettings, MessageSettings
from agents.settings.data import DataSettings, DiskSettings
from agents.settings.doors import LimitSettings, PageSettings, TerminalSettings
from agents.settings.extensions import AppSettings, ToolSettings
from agents.settings.files import SnapshotSettings, UploadSettings
from agents.settings.machines import MachineSettings
from agents.settings.models import ModelSettings, ScriptSettings
from agents.settings.operation import EventSettings, MetricsSettings
from agents.settings.retention import RetentionSettings
from agents.settings.secrets import SecretSettings
from agents.settings.workers import WorkerSettings

# The order of docs/reference/settings.md.
SETTINGS = (
    DataSettings,
    DiskSettings,
    SecretSettings,
    ModelSettings,
    ScriptSettings,
    WorkerSettings,
    MachineSettings,
    PageSettings,
    LimitSettings,
    TerminalSettings,
    MessageSettings,
    ContextSettings,
    SnapshotSettings,
    UploadSettings,
    RetentionSettings,
    AppSettings,
    ToolSettings,
    MetricsSettings,
    EventSettings,
)

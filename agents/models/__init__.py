"""The database models. Imports go agent → thread → run → message, tool_call, event → approval.

A model contains fields, constraints and properties that need no other module. The code that
changes rows is in `agents.services` and, for the hot path of a driver, in
`agents.engine.storage.journal`.
"""

from agents.models.agent import Agent, AgentVersion
from agents.models.api_request import IdempotencyKey, RequestCount
from agents.models.approval import ApprovalGrant, ApprovalKind, ApprovalRequest
from agents.models.audit import AuditEntry, Door
from agents.models.background_job import BackgroundJob
from agents.models.compaction import Compaction, CompactionAuthor
from agents.models.files.erased_files import ErasedFiles
from agents.models.files.seen_file import SeenFile
from agents.models.files.snapshot import SnapshotCause, WorkspaceSnapshot
from agents.models.files.state_file import StateFile
from agents.models.files.upload import MessageImage, Upload, UploadContent
from agents.models.machine import Machine
from agents.models.message import Message, MessageRole
from agents.models.run import (
    NEVER_STARTED,
    POOL,
    RESTORED,
    EndedRun,
    RemoteTrace,
    Run,
    RunClock,
    RunEvent,
)
from agents.models.server_process import ProcessKind, ServerProcess
from agents.models.thread import Epoch, MiddlewareState, Thread
from agents.models.token import ApiToken, TokenScope
from agents.models.tool_call import Effect, ToolCall
from agents.models.trigger import ThreadPolicy, Trigger, forget_trigger
from agents.models.usage_total import QUARTER_SECONDS, UsageTotal

__all__ = [
    "NEVER_STARTED",
    "POOL",
    "QUARTER_SECONDS",
    "RESTORED",
    "Agent",
    "AgentVersion",
    "ApiToken",
    "ApprovalGrant",
    "ApprovalKind",
    "ApprovalRequest",
    "AuditEntry",
    "BackgroundJob",
    "Compaction",
    "CompactionAuthor",
    "Door",
    "Effect",
    "EndedRun",
    "Epoch",
    "ErasedFiles",
    "IdempotencyKey",
    "Machine",
    "Message",
    "MessageImage",
    "MessageRole",
    "MiddlewareState",
    "ProcessKind",
    "RemoteTrace",
    "RequestCount",
    "Run",
    "RunClock",
    "RunEvent",
    "SeenFile",
    "ServerProcess",
    "SnapshotCause",
    "StateFile",
    "Thread",
    "ThreadPolicy",
    "TokenScope",
    "ToolCall",
    "Trigger",
    "Upload",
    "UploadContent",
    "UsageTotal",
    "WorkspaceSnapshot",
    "forget_trigger",
]

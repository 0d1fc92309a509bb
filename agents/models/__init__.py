"""Rows. Imports run one way: agent → thread → run → message, tool_call, event → approval.

A model holds fields, constraints and properties that need nothing else. What changes rows is in
`agents.services` and, for the hot path of a driver, in `agents.engine.journal`.
"""

from agents.models.agent import Agent, AgentVersion, NetworkChoice, ToolProfile
from agents.models.approval import ApprovalKind, ApprovalRequest
from agents.models.audit import AuditEntry, Door
from agents.models.budget import MICRO, Allowance, Budget, Period
from agents.models.compaction import Compaction, CompactionAuthor
from agents.models.credential import Credential, CredentialProvider
from agents.models.database import DatabaseConnection
from agents.models.ended_run import EndedRun
from agents.models.event import RunEvent
from agents.models.grant import ApprovalGrant
from agents.models.idempotency import IdempotencyKey
from agents.models.message import Message, MessageRole
from agents.models.middleware_state import MiddlewareState
from agents.models.notification import (
    Notification,
    NotificationStatus,
    NotificationTarget,
    TargetKind,
)
from agents.models.request_count import RequestCount
from agents.models.run import POOL, Run, RunClock
from agents.models.seen_file import SeenFile
from agents.models.snapshot import SnapshotCause, WorkspaceSnapshot
from agents.models.state_file import StateFile
from agents.models.subagent import Subagent
from agents.models.thread import Epoch, Thread
from agents.models.todo import Todo, TodoStatus
from agents.models.token import ApiToken, TokenScope
from agents.models.tool_call import Effect, ToolCall
from agents.models.upload import MessageImage, Upload

__all__ = [
    "MICRO",
    "POOL",
    "Agent",
    "AgentVersion",
    "Allowance",
    "ApiToken",
    "ApprovalGrant",
    "ApprovalKind",
    "ApprovalRequest",
    "AuditEntry",
    "Budget",
    "Compaction",
    "CompactionAuthor",
    "Credential",
    "CredentialProvider",
    "DatabaseConnection",
    "Door",
    "Effect",
    "EndedRun",
    "Epoch",
    "IdempotencyKey",
    "Message",
    "MessageImage",
    "MessageRole",
    "MiddlewareState",
    "NetworkChoice",
    "Notification",
    "NotificationStatus",
    "NotificationTarget",
    "Period",
    "RequestCount",
    "Run",
    "RunClock",
    "RunEvent",
    "SeenFile",
    "SnapshotCause",
    "StateFile",
    "Subagent",
    "TargetKind",
    "Thread",
    "Todo",
    "TodoStatus",
    "TokenScope",
    "ToolCall",
    "ToolProfile",
    "Upload",
    "WorkspaceSnapshot",
]

"""Version 1 of the REST API. Include it below a prefix: `path("api/v1/", include(…))`."""

from __future__ import annotations

from django.urls import path, re_path

from agents.api.agent_files import ExportAgent, ImportAgent
from agents.api.agents import (
    AgentDefinition,
    Agents,
    AgentTemplates,
    AgentVersions,
    EraseAgent,
    OneAgent,
    OneAgentVersion,
    RestoreAgentVersion,
)
from agents.api.audit import Audit
from agents.api.chat import CancelChat, Chat, ChatHistory, ChatStream
from agents.api.event_stream import RunEventStream
from agents.api.events import RunEvents
from agents.api.files import Changes, FileContent, Files, OneUpload, Restore, Uploads
from agents.api.machines import urlpatterns as machines
from agents.api.runs import CancelRun, OneRun, Runs
from agents.api.schema_views import Docs, Schema
from agents.api.threads import OneThread, Threads
from agents.api.tokens import OneToken, Tokens
from agents.api.toolboxes import OneToolbox, Toolboxes
from agents.api.transcript import (
    Artifacts,
    OneToolCall,
    ResumeRun,
    RunTranscript,
    Subagents,
    ThreadTranscript,
    ToolCalls,
)
from agents.api.usage import Usage
from agents.api.user_threads import urlpatterns as user_threads
from agents.api.user_tokens import urlpatterns as user_tokens
from agents.doors.rest.base import UnknownUrl
from agents.kernel.features import added_entries, collect

app_name = "api"
urlpatterns = [
    *(pattern for _, pattern in collect("api", "urlpatterns", skip_broken=True)),
    *added_entries("api", "urlpatterns"),
    path("agents", Agents.as_view(), name="agents"),
    path("agent-templates", AgentTemplates.as_view(), name="agent-templates"),
    path("agents/import", ImportAgent.as_view(), name="agent-import"),
    path("agents/<agent_name:agent_id>", OneAgent.as_view(), name="agent"),
    path(
        "agents/<agent_name:agent_id>/definition",
        AgentDefinition.as_view(),
        name="agent-definition",
    ),
    path("agents/<agent_name:agent_id>/erase", EraseAgent.as_view(), name="agent-erase"),
    path("agents/<agent_name:agent_id>/versions", AgentVersions.as_view(), name="agent-versions"),
    path(
        "agents/<agent_name:agent_id>/versions/<int:number>",
        OneAgentVersion.as_view(),
        name="agent-version",
    ),
    path(
        "agents/<agent_name:agent_id>/versions/<int:number>/restore",
        RestoreAgentVersion.as_view(),
        name="agent-version-restore",
    ),
    path("agents/<agent_name:agent_id>/export", ExportAgent.as_view(), name="agent-export"),
    path("agents/<agent_name:agent>/chat", Chat.as_view(), name="chat"),
    path(
        "agents/<agent_name:agent>/chat/<str:chat_id>", ChatHistory.as_view(), name="chat-history"
    ),
    path(
        "agents/<agent_name:agent>/chat/<str:chat_id>/stream",
        ChatStream.as_view(),
        name="chat-stream",
    ),
    path(
        "agents/<agent_name:agent>/chat/<str:chat_id>/cancel",
        CancelChat.as_view(),
        name="chat-cancel",
    ),
    path("runs", Runs.as_view(), name="runs"),
    path("runs/<opaque_id:run_id>", OneRun.as_view(), name="run"),
    path("runs/<opaque_id:run_id>/events", RunEvents.as_view(), name="run-events"),
    path(
        "runs/<opaque_id:run_id>/events/stream", RunEventStream.as_view(), name="run-event-stream"
    ),
    path("runs/<opaque_id:run_id>/cancel", CancelRun.as_view(), name="run-cancel"),
    path("runs/<opaque_id:run_id>/resume", ResumeRun.as_view(), name="run-resume"),
    path("runs/<opaque_id:run_id>/transcript", RunTranscript.as_view(), name="run-transcript"),
    path("runs/<opaque_id:run_id>/tool-calls", ToolCalls.as_view(), name="tool-calls"),
    path(
        "runs/<opaque_id:run_id>/tool-calls/<call_id:call_id>",
        OneToolCall.as_view(),
        name="tool-call",
    ),
    path("runs/<opaque_id:run_id>/artifacts", Artifacts.as_view(), name="artifacts"),
    path("runs/<opaque_id:run_id>/subagents", Subagents.as_view(), name="subagents"),
    path("usage", Usage.as_view(), name="usage"),
    path("audit", Audit.as_view(), name="audit"),
    path("toolboxes", Toolboxes.as_view(), name="toolboxes"),
    path("toolboxes/<opaque_id:name>", OneToolbox.as_view(), name="toolbox"),
    *machines,
    *user_threads,
    *user_tokens,
    path("threads", Threads.as_view(), name="threads"),
    path("threads/<opaque_id:thread_id>", OneThread.as_view(), name="thread"),
    path(
        "threads/<opaque_id:thread_id>/transcript",
        ThreadTranscript.as_view(),
        name="thread-transcript",
    ),
    path("threads/<opaque_id:thread_id>/files", Files.as_view(), name="files"),
    path("threads/<opaque_id:thread_id>/files/content", FileContent.as_view(), name="file-content"),
    path("threads/<opaque_id:thread_id>/uploads", Uploads.as_view(), name="uploads"),
    path(
        "threads/<opaque_id:thread_id>/uploads/<opaque_id:upload_id>",
        OneUpload.as_view(),
        name="upload",
    ),
    path("threads/<opaque_id:thread_id>/changes", Changes.as_view(), name="changes"),
    path("threads/<opaque_id:thread_id>/restore", Restore.as_view(), name="restore"),
    path("tokens", Tokens.as_view(), name="tokens"),
    path("tokens/<int:token_id>", OneToken.as_view(), name="token"),
    path("schema", Schema.as_view(), name="schema"),
    path("docs", Docs.as_view(), name="docs"),
    re_path("", UnknownUrl.as_view(), name="unknown"),
]

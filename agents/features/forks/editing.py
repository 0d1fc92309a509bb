"""Send an own message again with changes, in a new conversation. The old one stays as it is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import IO, Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.files import File

from agents.features.forks.actions import ForkRequest, complete_fork, prepared_fork
from agents.features.forks.files import NONE, THEN, CopiedFiles
from agents.models import Run
from agents.services.errors import Conflict, NotAllowed
from agents.services.files.thread_files import has_workspace, readable_files
from agents.services.files.uploads import create_run_with
from agents.services.runs.start import RunRequest
from agents.states import RunStatus
from sandbox.errors import FileError


def send_edited(
    run: Run, message: str, *, by: AbstractBaseUser, files: str = THEN
) -> tuple[Run, CopiedFiles]:
    """Start a run with another message instead of that of `run`.

    Its conversation has the messages and files from before `run`, and the files that were attached
    to its message.

    Args:
        run: The run of the old message. It does not change.
        message: The new message.
        by: The owner of the run.
        files: The files of the new conversation: see `ForkRequest`.

    Returns:
        The new run, and the files that were copied from an earlier run.

    Raises:
        Conflict: A file that was attached no longer exists, or as `prepared_fork`.
        InvalidRequest: As `create_run`.
        NotAllowed: `by` is not the owner.
        NotFound: The agent is unavailable to `by`.
        NoSpace: The disk is full.
    """
    if run.owner_id != by.pk:
        # Its files belong to its owner alone.
        raise NotAllowed("Only the owner of a run can edit its message.")
    before = _run_before(run)
    if before is None:
        return _start_again(run, message, by, files), CopiedFiles()
    request = ForkRequest(message=message, present_version=True, files=files)
    with prepared_fork(before, request, by=by) as fork:
        complete_fork(fork)
    assert fork.run is not None  # the request has a message
    return fork.run, fork.files


def _run_before(run: Run) -> Run | None:
    """Return the last run before `run` whose messages are in the conversation."""
    earlier = Run.objects.filter(
        thread=run.thread_id, parent=None, number__lt=run.number, message_refused=False
    )
    rows = earlier.exclude(status=RunStatus.PENDING).select_related("thread", "agent_version")
    return rows.order_by("-number").first()


def _start_again(run: Run, message: str, by: AbstractBaseUser, files: str) -> Run:
    """Start a conversation: `run` has the first message of its own."""
    request = RunRequest(agent=run.thread.agent.slug, message=message, source="web")
    with ExitStack() as opened:
        attached = [] if files == NONE else _attached(run, opened)
        return create_run_with(request, attached, owner=by).run


def _attached(run: Run, opened: ExitStack) -> list[File[Any]]:
    """Open the files of the message of `run`."""
    uploads = list(run.uploads.order_by("pk"))
    if not uploads:
        return []
    backend = readable_files(run.thread, in_workspace=has_workspace(run.thread))
    found: list[File[Any]] = []
    for upload in uploads:
        try:
            stream = opened.enter_context(backend.open_file(upload.path).stream)
        except FileError as error:
            raise Conflict(
                f"The attached file {upload.original_name!r} is not available ({error}). Choose no "
                "files, or write a new message.",
                code="upload_missing",
            ) from None
        found.append(File(cast("IO[bytes]", stream), name=upload.original_name))
    return found

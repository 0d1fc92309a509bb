"""Execution of one run: claim it, then take turn after turn until it ends or parks.

The database has the whole state of the run, however earlier drivers ended: open calls of the last
turn are finished first, then the model is called for the next turn.
"""

from __future__ import annotations

import asyncio
import logging
import time

from django.db import DatabaseError, DataError, IntegrityError

from agents.disk_space import full_disk, is_used_up
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.errors import FenceLost, Stopped, StopReason
from agents.engine.files.attachments import look_at_uploads
from agents.engine.files.thread_transfer import FilesNotRestored, settle_files
from agents.engine.loading import open_session
from agents.engine.process.heartbeat import RunHandle
from agents.engine.process.resources import Resources
from agents.engine.process.watching import watched
from agents.engine.run_context import Claimed, DrivenRun, claim_and_load
from agents.engine.session import Session
from agents.engine.storage.finish import cancel_driven_run, end_run, fail_run, stop_driving
from agents.engine.storage.journal import Writer
from agents.engine.storage.lease import MAX_LOST_DRIVERS, Claim, last_fault
from agents.engine.turns import limit_wall_time, report, run_turns
from agents.ids import run_marker
from agents.kernel.park import End
from agents.middleware.context import SubagentError
from agents.middleware.registry import ToolkitMissing
from agents.models import Run
from agents.providers.base import ProviderError
from agents.services.files.stored_snapshots import StorageFailed
from sandbox.reaper import kill_marked

logger = logging.getLogger(__name__)

FAULT_PAUSE = 0.5
MAX_FAULT_PAUSE = 30.0
"""The pause in seconds before a run is handed back after a database failure: the first one, and the
longest one. With twenty tries that is seven minutes, without the time in which the disk is full."""
ROOM_SECONDS = 1.0
"""The interval of checks whether the disk has space again."""


async def drive(worker: Resources, handle: RunHandle) -> None:
    """Execute a run until it ends, parks, or continues in another process. Never raises.

    If the database or the shared storage fails, or the disk is full, the run is released after a
    pause, or its lease expires if this fails too. A process then claims the run again. Any other
    exception fails the run.
    """
    run_id = handle.run_id
    claim: Claim | None = None
    try:
        claimed = await worker.database.run(
            claim_and_load, run_id, worker.executor, worker.name, worker.member
        )
        if claimed is None:
            return
        claim = claimed.claim
        handle.fence = claim.fence
        worker.holds(handle, claim.asked_at)
        reached(CrashPoint.CLAIMED)
        async with watched(worker.database, worker.name, claim):
            logger.info("claimed", extra={"fence": claim.fence})
            await _drive_claimed(worker, handle, claimed)
    except FenceLost:
        logger.warning("lost the lease", extra={"run_id": run_id, "fence": handle.fence})
    except (DataError, IntegrityError):
        await _failed(worker, handle)
    except DatabaseError as error:
        logger.warning("the database failed: %s", error, extra={"run_id": run_id})
        worker.database_failed(error)
        if claim is not None:
            await _pause(handle, claim.clock.lost_drivers)
            await worker.try_hand_back(handle, _fault(error))
    except StorageFailed as error:
        logger.warning("its files cannot be fetched: %s", error, extra={"run_id": run_id})
        if claim is not None:
            await _pause(handle, claim.clock.lost_drivers)
            await worker.try_hand_back(handle, "its files could not be fetched")
    except Exception as error:  # noqa: BLE001  # the last handler: the log has the traceback
        if claim is None or not full_disk(error):
            await _failed(worker, handle)
            return
        logger.warning("%s", full_disk(error), extra={"run_id": run_id})
        await _pause(handle, claim.clock.lost_drivers)
        await worker.try_hand_back(handle, "the disk was full")


def _fault(error: DatabaseError) -> str:
    """Return a text about a database error for people.

    The error's own message is only logged, because it names hosts.
    """
    if full_disk(error):
        return "the disk was full"
    what = "; ".join(["a database failed", *getattr(error, "__notes__", ())])
    return f"{what} ({type(error).__name__})"


async def _failed(worker: Resources, handle: RunHandle) -> None:
    """End a run after an error in Vel's code. If it were queued again, it would fail for ever."""
    logger.exception("driving a run failed", extra={"run_id": handle.run_id})
    await worker.try_fail(handle)


async def _pause(handle: RunHandle, earlier: int) -> None:
    """Wait after a failure of the database, longer after each one in a row.

    Another try may repeat a model call, which costs money. On a full disk, wait until there is
    space, or until the lease is lost.
    """
    try:
        with handle.interruptible():
            await asyncio.sleep(min(FAULT_PAUSE * 2**earlier, MAX_FAULT_PAUSE))
            while is_used_up():  # noqa: ASYNC110  # a file system sends no notification
                await asyncio.sleep(ROOM_SECONDS)
    except Stopped:
        return


async def _drive_claimed(worker: Resources, handle: RunHandle, claimed: Claimed) -> None:
    claim, spec, loaded = claimed.claim, claimed.spec, claimed.loaded
    if spec is None or loaded is None:
        assert claimed.failure is not None
        raise claimed.failure
    writer = Writer(claim.run.id, claim.run.thread_id, claim.fence, claim.run.parent_id)
    context = DrivenRun(claim, spec, writer, loaded, worker, handle)
    try:
        await _drive_loaded(worker, handle, claim, context, loaded.end)
        if context.chain.after_agent:
            status = await worker.database.run(_status_of, claim.run.id)
            for item in context.chain.after_agent:
                await item.after_agent(context, status)
    finally:
        await context.close()


def _status_of(run_id: str) -> str:
    return Run.objects.values_list("status", flat=True).get(pk=run_id)


async def _drive_loaded(
    worker: Resources, handle: RunHandle, claim: Claim, context: DrivenRun, end: End | None
) -> None:
    run, writer = claim.run, context.writer
    started = time.monotonic()

    def spent() -> int:
        return int((time.monotonic() - started) * 1000)

    session: Session | None = None
    try:
        if claim.recovered:
            # Invariant 1: the fencing token stops writes, but not processes in sandboxes.
            await worker.in_thread(kill_marked, [run_marker(run.id)])
        if claim.clock.cancel_requested:
            raise Stopped(StopReason.CANCEL)
        if claim.clock.lost_drivers >= MAX_LOST_DRIVERS:
            message = (
                f"{MAX_LOST_DRIVERS} times in a row this run lost its worker, or its worker the "
                "database. It may be what ends them: look at the logs before you resume it."
            )
            if fault := await worker.database.run(last_fault, run):
                message += f" The last time: {fault}."
            await worker.database.run(_fail, writer, "workers_lost", message, None, 0, False)
            return
        with handle.interruptible():
            for item in context.chain.before_agent:
                end = end or await item.before_agent(context)
        if end is not None:
            await worker.database.run(end_run, writer, end, spent())
            return
        await settle_files(worker, handle, writer, run)
        await look_at_uploads(worker, handle, writer, run)
        session = await open_session(worker, handle, claim, context)
        with limit_wall_time(session):
            await run_turns(session)
    except ProviderError as error:
        logger.warning("the model failed: %s", error.message, extra={"run_id": run.id})
        if session is not None:
            await report(session)
        await worker.database.run(
            _fail, writer, f"model_{error.code}", error.message, session, spent(), error.retryable
        )
    except ToolkitMissing as missing:
        await worker.database.run(
            _fail, writer, "toolkit_missing", str(missing), session, spent(), False
        )
    except SubagentError as problem:
        await worker.database.run(_fail, writer, "subagents", str(problem), session, spent(), False)
    except FilesNotRestored as error:
        told = ("files_not_restored", str(error))
        await worker.database.run(_fail, writer, *told, session, spent(), True)
    except Stopped as stop:
        await _stopped(worker, handle, writer, stop.reason, session, spent())


def _fail(
    writer: Writer,
    code: str,
    message: str,
    session: Session | None,
    spent: int,
    retryable: bool,
) -> None:
    fail_run(writer, code, message, session.active_ms() if session else spent, retryable=retryable)


async def _stopped(
    worker: Resources,
    handle: RunHandle,
    writer: Writer,
    reason: StopReason,
    session: Session | None,
    spent: int,
) -> None:
    active = session.active_ms() if session else spent
    if reason is StopReason.LEASE_LOST:
        raise FenceLost(writer.run_id)
    if session is not None and reason in (StopReason.CANCEL, StopReason.WALL_TIME):
        await report(session)
    if reason is StopReason.CANCEL:
        await worker.database.run(cancel_driven_run, writer, active)
    elif reason is StopReason.WALL_TIME:
        assert session is not None
        seconds = session.spec.max_seconds
        message = f"The run reached its limit of {seconds} seconds of work."
        await worker.database.run(_fail, writer, "limit_seconds", message, session, spent, False)
    else:
        await worker.database.run(stop_driving, writer, active)

"""The report at the end of a run: changed files that execute outside the sandbox later."""

from __future__ import annotations

import logging
from functools import partial

from agents.engine.files.snapshots import to_its_end
from agents.engine.session import Session
from agents.engine.storage.journal import write_events
from agents.events.append import EventDraft
from agents.services.files.outside_changes import forget_state_before, outside_changes

logger = logging.getLogger(__name__)


async def report_drafts(session: Session) -> list[EventDraft]:
    """Return the event for the transaction that ends the run; none if there are no changes."""
    location = session.files.location
    if location.own_directory is None or session.run.parent_id is not None:
        return []
    found = await to_its_end(session.threads, partial(outside_changes, location))
    return [found.event()] if found else []


async def report(session: Session) -> None:
    """Write the event before a run ends in another way than with its last reply."""
    drafts = await report_drafts(session)
    if drafts:
        await session.database.run(write_events, session.writer, drafts)
    await reported(session)


async def reported(session: Session) -> None:
    """Delete the state before the run, after the report is stored."""
    if session.run.parent_id is None:
        try:
            await to_its_end(session.threads, partial(forget_state_before, session.files.location))
        except OSError as error:
            # The next run reports these changes again.
            logger.warning("the state before the run stays: %s", error)

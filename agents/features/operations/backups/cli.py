"""`vel backup` and `vel restore`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from agents.doors.cli.boot import database as boot_database
from agents.doors.cli.errors import FAILED, CliError
from agents.doors.cli.late_imports import late_imports
from agents.doors.cli.options import json_option, persist_option
from agents.doors.cli.terminal import one_line

with late_imports:
    from agents.features.operations.backups.create import Made, create_backup
    from agents.features.operations.backups.errors import BackupRefused
    from agents.features.operations.backups.keys import passphrase_from
    from agents.features.operations.backups.listing import list_backups
    from agents.features.operations.backups.opening import open_backup
    from agents.features.operations.backups.places import keep_of, open_repository
    from agents.features.operations.backups.prune import Pruned, delete_backups, prune_backups
    from agents.features.operations.backups.restore import restore_backup, undo_restore
    from agents.features.operations.backups.status import note_failure, note_success
    from agents.features.operations.backups.unfinished import only_restore
    from agents.features.operations.backups.verify import verify_backup

_PLACE = "A directory, or s3://bucket/prefix. By default VEL_BACKUP_TO."
_from_option = click.option("--from", "place", metavar="PLACE", default="", help=_PLACE)
_keys_option = click.option(
    "--with-keys",
    is_flag=True,
    help="Use the keys in the backup. Their passphrase is VEL_BACKUP_PASSPHRASE; if this is not "
    "set, Vel asks.",
)
_passphrase_option = click.option(
    "--passphrase-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="As --with-keys, with the passphrase in FILE.",
)
_unsigned_option = click.option(
    "--accept-unsigned",
    is_flag=True,
    help="Accept a backup that no known key has signed. Its author can have put any account in it.",
)


@contextmanager
def _booted(persist: Path | None = None) -> Iterator[None]:
    with boot_database(persist, prepare=False):
        try:
            yield
        except BackupRefused as refused:
            raise CliError(str(refused), exit_code=FAILED) from refused


def _say(line: str) -> None:
    print(f"vel: {one_line(line, 300)}", file=sys.stderr)


def _passphrase(file: Path | None, *, ask: bool, confirm: bool = False) -> str | None:
    """Return the passphrase from a file, the environment or the terminal, or None."""
    found = passphrase_from(file)
    if found is not None or not ask:
        return found
    if not sys.stdin.isatty():
        raise BackupRefused(
            "There is no terminal to ask for the passphrase. Use --passphrase-file or "
            "VEL_BACKUP_PASSPHRASE."
        )
    entered: str = click.prompt(
        "Passphrase", hide_input=True, confirmation_prompt=confirm, err=True
    )
    return entered


@click.group(short_help="Make, list, check and delete backups.")
def backup() -> None:
    """Make, list, check and delete backups of the database and the files.

    Vel keeps running meanwhile. `vel restore` restores a backup.
    """


@backup.command(short_help="Make a backup.")
@click.option("--to", "place", metavar="PLACE", default="", help=_PLACE)
@click.option(
    "--include-keys",
    is_flag=True,
    help="Add the secret key and VEL_SECRET_KEYS, encrypted with the passphrase in "
    "VEL_BACKUP_PASSPHRASE; if this is not set, Vel asks.",
)
@click.option(
    "--passphrase-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --include-keys: use the passphrase in FILE.",
)
@persist_option
@json_option
def create(
    place: str,
    include_keys: bool,
    passphrase_file: Path | None,
    persist: Path | None,
    as_json: bool,
) -> None:
    """Make a backup, while Vel runs.

    Contents that an earlier backup in PLACE has stored are not stored again.
    """
    with _booted(persist):
        if passphrase_file is not None and not include_keys:
            raise CliError("--passphrase-file needs --include-keys.")
        passphrase = _passphrase(passphrase_file, ask=True, confirm=True) if include_keys else None
        made = _noted(place, passphrase)
        for note in made.notes:
            _say(note)
        manifest = made.manifest
        if as_json:
            print(
                json.dumps(
                    {
                        "name": made.name,
                        "files": len(manifest.files),
                        "bytes": manifest.file_bytes + manifest.database.size,
                        "new_objects": made.new_objects,
                        "new_bytes": made.new_bytes,
                        "has_keys": manifest.keys is not None,
                        "notes": made.notes,
                    }
                )
            )
            return
        rows = sum(each.rows for each in manifest.database.tables.values())
        print(f"Made the backup {made.name}: {rows:,} rows and {len(manifest.files):,} files.")
        print(f"New in the storage: {made.new_objects:,} objects with {made.new_bytes:,} bytes.")
        if manifest.keys is None:
            print("The keys are not in it. Keep a copy of the secret key, or use --include-keys.")


def _noted(place: str, passphrase: str | None) -> Made:
    """Make a backup, and note for `vel doctor` and the metrics whether that worked."""
    try:
        repository = open_repository(place)
        made = create_backup(repository, passphrase=passphrase, say=_say)
    except Exception as error:
        with suppress(OSError):  # the reason of the failure is the one to report
            note_failure(one_line(str(error), 500))
        raise
    try:
        note_success(made.name, repository.name)
    except OSError as error:
        raise BackupRefused(
            f"The backup {made.name} is complete, but `vel doctor` and the metrics do not show it: "
            f"the data directory cannot be written: {error.strerror}."
        ) from error
    return made


@backup.command("list", short_help="List the backups.")
@_from_option
@json_option
def list_command(place: str, as_json: bool) -> None:
    """List the backups in a place, the newest first."""
    with _booted():
        for row in list_backups(open_repository(place)):
            if as_json:
                print(json.dumps(asdict(row)))
                continue
            keys = ", with keys" if row.has_keys else ""
            what = row.problem or f"{row.files:,} files, {row.bytes:,} bytes, Vel {row.vel}{keys}"
            print(f"{row.name}  {one_line(what, 200)}")


@backup.command(short_help="Check that a backup can be restored.")
@click.argument("name", metavar="[BACKUP]", default="latest")
@_from_option
@click.option(
    "--scratch",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    help="A directory on a disk with enough free space. By default the data directory.",
)
@_keys_option
@_passphrase_option
@_unsigned_option
@json_option
def verify(
    name: str,
    place: str,
    scratch: Path | None,
    passphrase_file: Path | None,
    with_keys: bool,
    accept_unsigned: bool,
    as_json: bool,
) -> None:
    """Restore a backup into a scratch directory, and compare all counts and hashes.

    BACKUP is a name from `vel backup list`. Default: the latest. The scratch directory is deleted
    afterwards.
    """
    with _booted():
        repository = open_repository(place)
        with repository.shared():
            opened = open_backup(
                repository,
                name,
                passphrase=_passphrase(passphrase_file, ask=with_keys)
                if (with_keys or passphrase_file)
                else None,
                accept_unsigned=accept_unsigned,
            )
            found = verify_backup(opened, _say, scratch)
        if as_json:
            print(json.dumps({**asdict(found), "is_signed": opened.is_signed}))
            return
        print(
            f"The backup {found.name} is complete: {found.files:,} files, {found.rows:,} rows of "
            f"{found.tables} tables. Counts and hashes are equal."
        )


def _keep_option(period: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        f"--keep-{period}",
        type=click.IntRange(min=0),
        help=f"Number of {period} backups to keep. By default VEL_BACKUP_KEEP_{period.upper()}.",
    )


@backup.command(short_help="Delete old backups.")
@_from_option
@_keep_option("daily")
@_keep_option("weekly")
@_keep_option("monthly")
@click.option("--apply", "is_applied", is_flag=True, help="Delete. Without this, only show it.")
@json_option
def prune(
    place: str,
    keep_daily: int | None,
    keep_weekly: int | None,
    keep_monthly: int | None,
    is_applied: bool,
    as_json: bool,
) -> None:
    """Delete old backups, and objects that no backup needs.

    The options are numbers: Vel keeps the last backup of each of the last N days, weeks and
    months, for each data directory. It always keeps the newest backup of each, and the backups of
    other installations.
    """
    with _booted():
        keep = keep_of(keep_daily, keep_weekly, keep_monthly)
        done = prune_backups(open_repository(place), keep, apply=is_applied)
        _show_pruned(done, is_applied=is_applied, as_json=as_json)


@backup.command(short_help="Delete certain backups.")
@click.argument("names", metavar="BACKUP...", nargs=-1, required=True)
@_from_option
@json_option
def delete(names: tuple[str, ...], place: str, as_json: bool) -> None:
    """Delete certain backups, for example because they contain data that must be erased."""
    with _booted():
        done = delete_backups(open_repository(place), names)
        _show_pruned(done, is_applied=True, as_json=as_json)


def _show_pruned(done: Pruned, *, is_applied: bool, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**asdict(done), "applied": is_applied}))
        return
    for name in done.deleted:
        print(name)
    verb = "Deleted" if is_applied else "Would delete"
    print(
        f"{verb} {len(done.deleted):,} of {len(done.deleted) + len(done.kept):,} backups, and "
        f"{done.objects:,} objects with {done.bytes:,} bytes."
    )
    if not is_applied:
        print("Nothing was deleted. Add --apply.")


def _undo(*, as_json: bool) -> None:
    with only_restore():
        if not undo_restore(_say):
            raise BackupRefused("No restore was interrupted here. Nothing was changed.")
    print(json.dumps({"undone": True}) if as_json else "The installation is as before the restore.")


@click.command(short_help="Restore a backup.")
@click.argument("name", metavar="[BACKUP]", default="")
@_from_option
@click.option(
    "--undo",
    is_flag=True,
    help="Undo an interrupted restore: bring back the installation before it.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="If an installation is there, rename it, and restore in its place.",
)
@click.option("--revoke-tokens", is_flag=True, help="Make all API tokens invalid.")
@_keys_option
@_passphrase_option
@_unsigned_option
@persist_option
@json_option
def restore(name: str, undo: bool, persist: Path | None, as_json: bool, **options: Any) -> None:
    """Restore a backup into VEL_DATA_DIR and DATABASE_URL.

    Name one BACKUP from `vel backup list`, or latest, except with --undo. Stop Vel first. If
    anything fails, everything is as before.

    Runs that were working wait for a person (vel runs resume), schedules and webhooks are paused,
    and everybody signs in again.
    """
    if bool(name) == undo:
        raise CliError("Name one BACKUP, such as latest, or use --undo.")
    with _booted(persist):
        if undo:
            _undo(as_json=as_json)
            return
        repository = open_repository(options["place"])
        file, ask = options["passphrase_file"], options["with_keys"]
        with repository.shared():
            opened = open_backup(
                repository,
                name,
                passphrase=_passphrase(file, ask=ask) if ask or file else None,
                accept_unsigned=options["accept_unsigned"],
            )
            done = restore_backup(
                opened,
                replace=options["replace"],
                revoke_tokens=options["revoke_tokens"],
                say=_say,
            )
        for note in done.notes:
            _say(note)
        if as_json:
            print(json.dumps(asdict(done)))
            return
        reviewed = done.reviewed
        print(f"Restored the backup {done.name}.")
        for kept in done.kept:
            print(f"Kept: {kept}")
        print(
            f"Held for review: {reviewed.runs:,} runs. Look at each (vel runs list --all --held). "
            "Continue your own with `vel runs resume RUN`, and those of others in the admin."
        )
        print(f"Paused: {reviewed.triggers:,} schedules and webhooks. Enable each again.")
        print(f"Ended: {reviewed.sessions:,} sessions. Revoked: {reviewed.tokens:,} tokens.")

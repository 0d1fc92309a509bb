"""Delete old backups, and objects that no backup needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agents.features.operations.backups.errors import BackupRefused
from agents.features.operations.backups.keys import present_keys
from agents.features.operations.backups.repository import Repository


@dataclass(frozen=True, slots=True)
class Keep:
    """How many backups stay: the last one of each of the last days, weeks and months with one."""

    daily: int
    weekly: int
    monthly: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of a deletion, or its preview.

    `objects` and `bytes` are the number and the stored size of the deleted objects.
    """

    deleted: list[str]
    kept: list[str]
    objects: int
    bytes: int


def kept_names(names: Sequence[str], keep: Keep) -> set[str]:
    """Return the names of the backups to keep. The last one is always kept."""
    newest_first = sorted(names, reverse=True)
    kept = set(newest_first[:1])
    rules: tuple[tuple[int, Callable[[datetime], object]], ...] = (
        (keep.daily, lambda time: time.date()),
        (keep.weekly, lambda time: time.isocalendar()[:2]),
        (keep.monthly, lambda time: (time.year, time.month)),
    )
    for count, period_of in rules:
        periods: dict[object, str] = {}
        for name in newest_first:
            periods.setdefault(period_of(time_of(name)), name)
        kept |= set(list(periods.values())[:count])
    return kept


def time_of(name: str) -> datetime:
    """Return when a backup was made, from its name."""
    return datetime.strptime(name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def prune_backups(repository: Repository, keep: Keep, *, apply: bool) -> Pruned:
    """Delete the backups of this installation that `keep` does not name.

    Each of several hosts has its own files, so `keep` counts for each data directory.

    Without `apply`, only return what would be deleted. Backups with other signatures stay, with
    their objects.

    Raises:
        BackupRefused: Somebody uses the backups, or a manifest cannot be read: nothing is deleted.
            Or the storage failed during the deletion.
    """
    secrets = present_keys().signing

    def chosen() -> list[str]:
        found: list[str] = []
        for names in _own_names(repository, secrets).values():
            found += set(names) - kept_names(names, keep)
        return sorted(found)

    return _delete(repository, chosen, apply=apply)


def delete_backups(repository: Repository, names: Sequence[str]) -> Pruned:
    """Delete these backups, whoever signed them, and the objects that no other backup needs.

    A manifest that cannot be read is deleted, too, if its name is given.

    Raises:
        BackupRefused: As `prune_backups`, and for an unknown name.
    """

    def chosen() -> list[str]:
        known = set(repository.names())
        for name in names:
            if name not in known:
                raise BackupRefused(f"There is no backup {name!a} in {repository.name}.")
        return sorted(set(names))

    return _delete(repository, chosen, apply=True)


def _own_names(repository: Repository, secrets: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of this installation's backups, by their data directory."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in repository.names():
        try:
            manifest = repository.manifest(name)
            if manifest.is_signed_with(secrets):
                found[manifest.data_directory].append(name)
        except BackupRefused:
            continue  # it stays, and `_delete` refuses
    return found


def _objects_of(repository: Repository, name: str, secrets: Sequence[str]) -> Iterator[str]:
    """Return at least the objects of a backup, also of one that another installation has signed."""
    unread = repository.manifest(name)
    if not unread.is_signed_with(secrets) and (
        unread.has_other_name or unread.names_key_of(secrets)
    ):
        raise BackupRefused(f"The manifest of {name} was changed after the backup was made.")
    return unread.named_objects()


def _delete(repository: Repository, chosen: Callable[[], list[str]], *, apply: bool) -> Pruned:
    try:
        return _delete_alone(repository, chosen, apply=apply)
    except OSError as error:
        raise BackupRefused(
            f"Cannot delete in {repository.name}: {error.strerror}. Repair this, then repeat the "
            "command: it deletes what is left."
        ) from error


def _delete_alone(
    repository: Repository, chosen: Callable[[], list[str]], *, apply: bool
) -> Pruned:
    secrets = present_keys().signing
    with repository.alone():
        deleted = chosen()
        kept = [name for name in repository.names() if name not in deleted]
        # Every manifest that stays must be readable: otherwise its objects would be deleted.
        unneeded = repository.digests()
        for name in kept:
            try:
                for digest in _objects_of(repository, name, secrets):
                    unneeded.pop(digest, None)
            except BackupRefused as refused:
                raise BackupRefused(
                    f"{refused} Nothing was deleted. To delete this backup: vel backup delete "
                    f"{name}"
                ) from refused
        if apply:
            repository.remove_remains()
            for name in deleted:
                repository.delete_manifest(name)
            for digest in unneeded:
                repository.delete(digest)
    return Pruned(deleted, kept, len(unneeded), sum(unneeded.values()))

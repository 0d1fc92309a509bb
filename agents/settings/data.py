"""Where Vel keeps files, and how much of the disk it leaves free."""

from pathlib import Path
from typing import Annotated

from agents.kernel.settings import About, Bytes, FeatureSettings


class DataSettings(FeatureSettings):
    """Data directory"""

    DATA_DIR: Annotated[
        Path,
        About(
            default="`/var/lib/vel` for root, else `$XDG_DATA_HOME/vel` or `~/.local/share/vel`; "
            "in a project of your own always `/var/lib/vel`"
        ),
    ] = Path("/var/lib/vel")
    """The directory of the database, the secret key, workspaces and toolboxes. The accounts that
    sandboxes run as must be able to enter it."""

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
        """Workspaces that another machine continued while this one was away."""
        return self.DATA_DIR / "set-aside"

    @property
    def synced_copies(self) -> Path:
        """Copies of other machines' workspaces, which people can view."""
        return self.DATA_DIR / "mirrors"

    @property
    def toolboxes(self) -> Path:
        return self.DATA_DIR / "toolboxes"


class DiskSettings(FeatureSettings):
    """Disk space"""

    IN_PROGRAMS = True

    RESERVE_BYTES: Bytes = 100_000_000
    """Free space on the disk of the data directory that is [reserved](limits.md#a-full-disk) for
    active runs. With less, no new run starts. 0: no reserve."""

    @property
    def sandbox_reserve(self) -> int:
        """The free space at which file tools and commands stop writing.

        It is more than the reserve, because a command can write for a moment before it is killed.
        """
        return 2 * self.RESERVE_BYTES

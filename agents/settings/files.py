"""Files of threads: snapshots, uploads."""

from agents.kernel.settings import Bytes, Count, FeatureSettings


class SnapshotSettings(FeatureSettings):
    """Snapshots"""

    SNAPSHOT_TURNS: Count = 50
    """Turns that changed files of a thread and that people can look at and restore. 0: no
    snapshots."""
    SNAPSHOT_BYTES: Bytes = 1024**3
    """Disk space for the snapshots of one thread. The oldest are deleted first."""


class UploadSettings(FeatureSettings):
    """Uploads

    See [uploads](../guides/uploads.md).
    """

    UPLOAD_BYTES: Bytes = 50_000_000
    """The maximum of all uploads to one thread."""
    UPLOAD_FILES: Count = 100
    """The maximum number of files that people can upload to one thread."""
    UPLOAD_TYPES: tuple[str, ...] = ("text", "data", "office", "pdf", "image", "archive")
    """Kinds of files that are [accepted](../guides/uploads.md#accepted-files). `other` accepts all
    the rest as bytes."""
    DOCUMENTS_TOOLBOX: str = "documents"
    """The toolbox whose Python reads [office files, PDFs and
    pictures](../guides/uploads.md#conversion-to-markdown). An empty text in `VEL` switches
    it off."""

"""Rows of agents' memory. `memory` never imports `agents`: foreign keys name its models."""

from memory.models.edit_request import MemoryEditRequest
from memory.models.file import MemoryFile, MemoryRevision, Operation

__all__ = ["MemoryEditRequest", "MemoryFile", "MemoryRevision", "Operation"]

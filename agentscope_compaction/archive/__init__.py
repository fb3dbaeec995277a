"""Archives: whole histories kept exactly, so that whatever was cut can come back."""

from agentscope_compaction.archive.memory import InMemoryArchive
from agentscope_compaction.archive.protocol import (
    Archive,
    ArchiveEntry,
    ArchiveRef,
    AuditedArchive,
    SessionUsage,
)
from agentscope_compaction.archive.records import (
    ArchiveRecord,
    Outcome,
    OutcomeKind,
    recall_counts,
)
from agentscope_compaction.archive.sql import SqlArchive
from agentscope_compaction.archive.urls import archive_from_url

__all__ = [
    "Archive",
    "ArchiveEntry",
    "ArchiveRecord",
    "ArchiveRef",
    "AuditedArchive",
    "InMemoryArchive",
    "Outcome",
    "OutcomeKind",
    "SessionUsage",
    "SqlArchive",
    "archive_from_url",
    "recall_counts",
]

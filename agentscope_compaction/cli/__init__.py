"""The command ``agentscope-compaction``; also ``python -m agentscope_compaction``."""

from agentscope_compaction.cli.app import main

__all__ = ["main"]

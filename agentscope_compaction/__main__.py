"""``python -m agentscope_compaction``: the same as ``agentscope-compaction``."""

import sys

from agentscope_compaction.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""Ask several decision models about the same history and compare what each would do.

The embedded model always answers. Jev joins with DECISION_MODEL_API_KEY, OpenAI's decisions with
OPENAI_API_KEY; what has no key is left out, so that the example runs offline.
"""

from __future__ import annotations

import asyncio
import os

from agentscope_compaction import CompactionOptions, compact_context, decision_model_from_env
from agentscope_compaction.testing import HistoryBuilder


async def main() -> None:
    """Print one line per model."""
    history = HistoryBuilder().user("Customers are charged twice. Find out why.")
    history.call("Read", {"path": "retry.py"}, "def retry(call): ...\n" * 120)
    history.call("Grep", {"pattern": "icon"}, "theme.css: .icon { color: red }\n" * 120)
    history.call("Read", {"path": "retry.py"}, "def retry(call): ...\n" * 120)
    history.say("The retry loop in retry.py sends the charge again. I will fix it there.")
    request = {
        "messages": history.reply().say("Now the fix.").messages,
        "goal": "Fix the retry loop in retry.py",
        "eligible_tool_names": ["Read", "Grep"],
        "options": CompactionOptions.for_agents(preserve_recent_calls=0),
    }
    keys = {"embedded": None, "jev": "DECISION_MODEL_API_KEY", "openai": "OPENAI_API_KEY"}
    for backend, key in keys.items():
        if key is not None and key not in os.environ:
            print(f"{backend}: left out, {key} is not set")
            continue
        model = decision_model_from_env(env={**os.environ, "DECISION_MODEL_BACKEND": backend})
        proposal = await compact_context(request, model)
        fates = ", ".join(f"{d.id} {d.action} ({d.reason})" for d in proposal.decisions)
        print(f"{backend} ({proposal.stats['model']}): {fates}")


if __name__ == "__main__":
    asyncio.run(main())

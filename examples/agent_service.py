"""AgentScope's own service with compaction in every agent it builds.

The real FastAPI app on SQLite storage, called in process; middlewares and agents are built anew for
every run, so all that compaction remembers is in the saved state. Runs offline: scripted chat and
decision models, temporary files. Needs ``agentscope[service]``.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, Literal

import httpx
from agentscope.app import create_app
from agentscope.app.message_bus import InMemoryMessageBus
from agentscope.app.storage import AsyncSQLAlchemyStorage
from agentscope.app.workspace_manager import LocalWorkspaceManager
from agentscope.credential import CredentialBase
from agentscope.message import UserMsg
from agentscope.model import ChatModelBase
from agentscope.tool import FunctionTool, ToolBase

from agentscope_compaction import (
    CompactionOptions,
    Compactor,
    SqlArchive,
    accept_all,
    compaction_middlewares,
)
from agentscope_compaction.testing import ScriptedDecisionModel
from agentscope_compaction.testing.chat import ScriptedChatModel, say, use

USER = {"X-User-ID": "alice"}
ModelClass = type[ChatModelBase]


class OfflineModel(ScriptedChatModel):
    """Plays one reply of sixteen calls, as the service builds models: by keywords only."""

    def __init__(self, **given: Any) -> None:
        turns = [[use("read_page", f"p{n}", number=n)] for n in range(16)]
        super().__init__([*turns, [say("All pages read.")]], context_size=32_000, stream=True)

    @classmethod
    def list_models(cls, *args: Any, **kwargs: Any) -> list[Any]:
        """Name no models."""
        return []


class OfflineCredential(CredentialBase):
    """Stands in for a provider's key."""

    type: Literal["offline_credential"] = "offline_credential"

    @classmethod
    def get_chat_model_class(cls) -> ModelClass:
        """Return the scripted model."""
        return OfflineModel


def read_page(number: int) -> Any:
    """Read a page."""
    return "\n".join(f"page {number}, paragraph {n}" for n in range(200))


async def tools(user_id: str, agent_id: str, session_id: str) -> list[ToolBase]:
    """Give every agent the reading tool."""
    return [FunctionTool(read_page, is_read_only=True)]


async def create(client: httpx.AsyncClient, path: str, field: str, body: dict[str, Any]) -> str:
    """Create one thing of the service and return its id."""
    response = await client.post(path, json=body, headers=USER)
    response.raise_for_status()
    return str(response.json()[field])


async def main() -> None:
    """Create an agent over HTTP, chat once, and look at its stored state."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with SqlArchive(str(root / "archive.db")) as archive:
            options = CompactionOptions.for_agents(preserve_recent_calls=1, require_signal=False)
            judge = ScriptedDecisionModel({"call": 0.9, "result": 0.05})
            compactor = Compactor(judge, archive, options, ["read_page"])
            storage = AsyncSQLAlchemyStorage(f"sqlite+aiosqlite:///{root / 'service.db'}")
            app = create_app(
                storage=storage,
                message_bus=InMemoryMessageBus(),
                workspace_manager=LocalWorkspaceManager(str(root / "workspaces")),
                enable_scheduler=False,
                enable_channel_worker=False,
                extra_credentials=[OfflineCredential],
                extra_agent_tools=tools,
                extra_agent_middlewares=compaction_middlewares(
                    compactor, accept_all, trigger_ratio=0.6, target_ratio=0.4
                ),
            )
            async with app.router.lifespan_context(app):
                transport = httpx.ASGITransport(app=app)
                async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
                    await chat(client, storage)


async def chat(client: httpx.AsyncClient, storage: AsyncSQLAlchemyStorage) -> None:
    """Run one chat and print what is left in the agent's context."""
    credential = await create(
        client, "/credential/", "credential_id", {"data": {"type": "offline_credential"}}
    )
    agent = await create(
        client, "/agent/", "agent_id", {"name": "reader", "system_prompt": "You read."}
    )
    model = {
        "type": "offline_credential",
        "credential_id": credential,
        "model": "scripted-chat",
        "parameters": {},
    }
    session = await create(
        client, "/sessions/", "session_id", {"agent_id": agent, "chat_model_config": model}
    )
    question = UserMsg(name="alice", content="Read the pages.").model_dump(mode="json")
    body = {"agent_id": agent, "session_id": session, "input": question}
    (await client.post("/chat/", json=body, headers=USER)).raise_for_status()
    for _ in range(600):
        record = await storage.get_session("alice", agent, session)
        if record is not None and len(record.state.context) > 1:
            break
        await asyncio.sleep(0.05)
    else:
        raise SystemExit("the chat run did not end")
    results = [b for m in record.state.context for b in m.content if b.type == "tool_result"]
    cut = [block.id for block in results if "compaction" in block.metadata]
    print(f"{len(cut)} of {len(results)} outputs are cut: {', '.join(cut)}")
    print("remembered:", json.dumps(sorted(record.state.middle_context)))


if __name__ == "__main__":
    asyncio.run(main())

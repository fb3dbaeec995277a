"""A chat model that replies from a script, so that real agents run without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from agentscope.credential import CredentialBase
from agentscope.formatter import FormatterBase, OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ThinkingBlock, ToolCallBlock
from agentscope.model import ChatModelBase, ChatResponse, StructuredResponse
from pydantic import BaseModel

__all__ = ["ScriptedChatModel", "say", "use"]

Block = TextBlock | ThinkingBlock | ToolCallBlock
Turn = Sequence[Block] | Callable[[list[Msg]], Sequence[Block]]


def say(text: str) -> TextBlock:
    """Return a text block."""
    return TextBlock(text=text)


def use(tool: str, call_id: str, /, **arguments: Any) -> ToolCallBlock:
    """Return a tool call."""
    return ToolCallBlock(id=call_id, name=tool, input=json.dumps(arguments))


class ScriptedChatModel(ChatModelBase):
    """Plays its turns in order, one per model call, and records what it was sent.

    Args:
        turns: Blocks of each response, or a function of the messages sent that returns them. After
            the last turn it says "done".
        context_size: The window AgentScope's ratios refer to, in tokens.
        stream: Whether responses come in two chunks.
        formatter: Formats every call's messages, as a provider's model would; its result is kept
            in ``formatted``.
    """

    def __init__(
        self,
        turns: Sequence[Turn],
        *,
        context_size: int = 32_768,
        stream: bool = False,
        formatter: FormatterBase | None = None,
    ) -> None:
        super().__init__(
            credential=CredentialBase(),
            model="scripted-chat",
            parameters=self.Parameters(),
            stream=stream,
            max_retries=0,
            context_size=context_size,
        )
        self.formatter = formatter or OpenAIChatFormatter()
        self.turns = list(turns)
        self.calls: list[list[Msg]] = []
        """The messages of every model call."""
        self.formatted: list[list[dict[str, Any]]] = []
        """The same messages as the provider would get them."""
        self.summaries = 0
        """How often AgentScope asked for a structured output: its own context summary."""

    async def _call_api(
        self,
        model_name: str,
        messages: list[Msg],
        tools: list[dict[str, Any]] | None = None,
        tool_choice: Any = None,
        **kwargs: Any,
    ) -> ChatResponse | AsyncGenerator[ChatResponse, None]:
        turn: Turn = [say("done")]
        if len(self.calls) < len(self.turns):
            turn = self.turns[len(self.calls)]
        self.calls.append([message.model_copy(deep=True) for message in messages])
        self.formatted.append(await self.formatter.format(messages))
        played = turn(messages) if callable(turn) else turn
        # AgentScope keeps and changes the blocks of a response: the script must stay as it is.
        blocks: list[Any] = [block.model_copy(deep=True) for block in played]
        if not self.stream:
            return ChatResponse(content=blocks, is_last=True)
        return self._chunks(blocks)

    async def _chunks(self, blocks: list[Any]) -> AsyncGenerator[ChatResponse, None]:
        yield ChatResponse(content=blocks, is_last=False)
        yield ChatResponse(content=blocks, is_last=True)

    async def generate_structured_output(
        self,
        messages: list[Msg],
        structured_model: type[BaseModel] | dict[str, Any],
        **kwargs: Any,
    ) -> StructuredResponse:
        """Count the request and answer every string field with a fixed text."""
        self.summaries += 1
        schema = (
            structured_model
            if isinstance(structured_model, dict)
            else structured_model.model_json_schema()
        )
        content = dict.fromkeys(schema.get("properties", {}), "scripted summary")
        return StructuredResponse(content=content)

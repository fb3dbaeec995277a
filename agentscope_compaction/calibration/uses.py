"""Which strings of old tool calls the rest of a history really used.

No model is involved. A strong string (URL, path, hash, id, long number, or a long verbatim run)
that an assistant text or a tool input uses, and that until then stood nowhere but in tool calls,
can only have been read there: had the call been cut, it would have been lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentscope_compaction.calibration.runs import RunIndex, normal
from agentscope_compaction.core.pairing import Spot, result_text
from agentscope_compaction.core.scan import CHUNK, STRONG, classify, trim
from agentscope_compaction.core.types import JSONObject
from agentscope_compaction.models.embedded.text import input_fields, input_text

__all__ = ["Holder", "Ledger", "Use", "find_uses", "holds", "readable"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A block that holds a used string."""

    spot: Spot
    is_input: bool


@dataclass(frozen=True, slots=True)
class Use:
    """A strong string at its first use, with every tool call block that held it until then."""

    text: str
    verbatim: bool
    holders: tuple[Holder, ...]

    @property
    def only_outputs(self) -> bool:
        """Whether no tool input holds it."""
        return not any(holder.is_input for holder in self.holders)


class Ledger:
    """Reads a history block by block and knows what stands where.

    ``hold`` is for blocks a compactor may cut, ``show`` for text it leaves alone.
    """

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._shown_names: set[str] = set()
        self._names: dict[str, list[Holder]] = {}
        self._runs = RunIndex()
        self._holders: list[Holder] = []
        self._used: set[str] = set()

    def hold(self, spot: Spot, text: str, *, is_input: bool = False) -> None:
        """Add the text of a tool call's input or output."""
        holder = Holder(spot, is_input)
        text = normal(text)
        self._holders.append(holder)
        self._runs.add(text)
        for name in _names(text):
            self._names.setdefault(name, []).append(holder)

    def show(self, text: str) -> None:
        """Add text that stays visible whatever is cut."""
        text = normal(text)
        self._shown.append(text)
        self._shown_names |= _names(text)

    def uses(self, text: str) -> list[Use]:
        """Return the strings this text is the first to use out of what is held and not shown.

        A name inside a verbatim run counts with the run. Asking again brings nothing.
        """
        text = normal(text)
        found = []
        for run in self._runs.matches(text):
            if run not in self._used and not any(run in shown for shown in self._shown):
                holders = tuple(self._holders[n] for n in self._runs.texts_with(run))
                found.append(Use(run, True, holders))
        runs = [use.text for use in found]
        for name in sorted(_names(text)):
            holders = tuple(self._names.get(name, ()))
            if holders and not self._is_known(name) and not any(name in run for run in runs):
                found.append(Use(name, False, holders))
        self._used |= {use.text for use in found}
        return found

    def _is_known(self, name: str) -> bool:
        if name in self._used or name in self._shown_names:
            return True
        return any(_has_word(shown, name) for shown in self._shown)


def find_uses(past: Sequence[JSONObject], future: Sequence[JSONObject]) -> list[Use]:
    """Label a cut history by later use.

    Args:
        past: Messages before the cut; ``Holder.spot`` is a message and a block index in it.
        future: Messages after it. Its own outputs count as visible once they have appeared.

    Returns:
        Every strong string that the future used first and that, at that moment, stood nowhere
        but in tool inputs and outputs of the past; in order of use.
    """
    ledger = Ledger()
    for mi, bi, block, _ in _blocks(past):
        kind = block.get("type")
        if kind in ("tool_call", "tool_result"):
            ledger.hold((mi, bi), readable(block), is_input=kind == "tool_call")
        else:
            ledger.show(readable(block))
    found: list[Use] = []
    for _, _, block, role in _blocks(future):
        text = readable(block)
        if block.get("type") == "tool_call" or (block.get("type") == "text" and role != "user"):
            found += ledger.uses(text)
        ledger.show(text)
    return found


def holds(text: str, use: Use) -> bool:
    """Whether a text still holds a used string, as a whole word unless it is a verbatim run."""
    text = normal(text)
    return use.text in text if use.verbatim else _has_word(text, use.text)


def readable(block: JSONObject) -> str:
    """Return the text of a block as its reader sees it: for an input, the strings of its JSON."""
    match block.get("type"):
        case "tool_call":
            raw = str(block.get("input", ""))
            return input_text(input_fields(raw), raw)
        case "tool_result":
            return _output(block)
        case "text" | "thinking" | "hint":
            value = block.get(str(block["type"]))
            return value if isinstance(value, str) else ""
        case _:
            return ""


def _output(block: JSONObject) -> str:
    text = result_text(block)
    if text is not None:
        return text
    output = block.get("output")
    parts = output if isinstance(output, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _blocks(messages: Sequence[JSONObject]) -> Iterator[tuple[int, int, JSONObject, str]]:
    for mi, message in enumerate(messages):
        for bi, block in enumerate(message["content"]):
            yield mi, bi, block, message["role"]


def _names(text: str) -> set[str]:
    chunks = {trim(chunk) for chunk in CHUNK.findall(text)}
    return {name for name in chunks if classify(name) in STRONG}


def _has_word(text: str, word: str) -> bool:
    """Whether the word stands in the text and is no fragment of a longer one."""
    place = text.find(word)
    while place >= 0:
        end = place + len(word)
        before = place > 0 and _wordy(text[place - 1]) and _wordy(word[0])
        after = end < len(text) and _wordy(text[end]) and _wordy(word[-1])
        if not before and not after:
            return True
        place = text.find(word, place + 1)
    return False


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"

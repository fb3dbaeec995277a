"""Token counts of a history: tiktoken where its data are at hand offline, else the estimator.

tiktoken downloads an encoding on first use. Inside an agent that would be a hidden, blocking
network call, so an encoding is loaded only when its file is in tiktoken's cache already, or when
an installed plugin (``tiktoken_ext``) brings it along.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pkgutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from agentscope_compaction.core.estimate import estimate_tokens

__all__ = ["TokenCounter", "default_counter", "texts_of"]

_PREFERRED = ("o200k_base", "cl100k_base")
_COUNTED = ("text", "thinking", "hint", "name", "input", "output")
"""The fields of a block that a model is sent."""
_CACHED_STRINGS = 8_192
_SLICE_CHARS = 100_000
"""Longer texts are counted in slices: tiktoken's regular expressions give up on huge runs."""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts a history's tokens; ``name`` says how."""

    name: str
    count_text: Callable[[str], int]
    reads_only: ClassVar[bool] = True

    def __call__(self, messages: list[dict[str, Any]]) -> int:
        """Return the tokens of all strings a model is sent: texts, thinking, inputs, outputs."""
        return sum(map(self.count_text, texts_of(messages)))

    def remembering(self) -> TokenCounter:
        """Return a counter that counts each string once; it and its memory live together."""
        return TokenCounter(self.name, functools.cache(self.count_text))


def texts_of(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the strings of a history that count, in order."""
    texts: list[str] = []
    for message in messages:
        for block in message["content"]:
            _collect(block, texts)
    return texts


def _collect(block: dict[str, Any], texts: list[str]) -> None:
    for key in _COUNTED:
        value = block.get(key)
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    _collect(item, texts)


@functools.cache
def default_counter() -> TokenCounter:
    """Return the best counter that needs no network; never downloads anything."""
    encoding = _offline_encoding()
    if encoding is None:
        return TokenCounter("estimate", _estimated)

    @functools.lru_cache(maxsize=_CACHED_STRINGS)
    def count(text: str) -> int:
        slices = (text[n : n + _SLICE_CHARS] for n in range(0, len(text), _SLICE_CHARS))
        return sum(len(encoding.encode_ordinary(part)) for part in slices)

    return TokenCounter(f"tiktoken:{encoding.name}", count)


_estimated = functools.lru_cache(maxsize=_CACHED_STRINGS)(estimate_tokens)


def _offline_encoding() -> Any:
    try:
        import tiktoken
    except ImportError:  # pragma: no cover - a declared dependency
        return None
    for name in (*_plugin_encodings(), *_PREFERRED):
        if name not in _PREFERRED or _is_cached(name):
            try:
                return tiktoken.get_encoding(name)
            except Exception:  # a broken plugin or cache must not break counting
                continue
    return None


def _plugin_encodings() -> list[str]:
    """Encodings of installed ``tiktoken_ext`` plugins other than tiktoken's own."""
    try:
        import tiktoken_ext
    except ImportError:  # pragma: no cover
        return []
    names: list[str] = []
    for module in pkgutil.iter_modules(tiktoken_ext.__path__, "tiktoken_ext."):
        if module.name != "tiktoken_ext.openai_public":
            try:
                names += importlib.import_module(module.name).ENCODING_CONSTRUCTORS
            except Exception:  # not ours to judge
                continue
    return sorted(name for name in names if "offline" in name or "local" in name)


def _is_cached(name: str) -> bool:
    """Whether tiktoken's own cache holds the encoding's file, so that loading cannot download.

    tiktoken names a cached file by the SHA-1 of its address, and deletes and downloads again one
    whose SHA-256 is not the expected one (``tiktoken/load.py``), so the content is checked too.
    """
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":
        return False
    folder = folder or os.path.join(tempfile.gettempdir(), "data-gym-cache")
    constants = _constants(name)
    address = next((c for c in constants if c.endswith(".tiktoken")), None)
    if address is None:
        return False
    path = os.path.join(folder, hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest())
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() in constants
    except OSError:
        return False


def _constants(name: str) -> list[str]:
    """Read the strings (file address, expected digest) in the source of a tiktoken encoding."""
    import tiktoken_ext.openai_public as public

    constructor = public.ENCODING_CONSTRUCTORS.get(name)
    constants = constructor.__code__.co_consts if constructor else ()
    return [c for c in constants if isinstance(c, str)]

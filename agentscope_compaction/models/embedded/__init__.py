"""The embedded decision model, the default without a key: pure Python, local, deterministic."""

from agentscope_compaction.models.embedded.model import MODEL_ID, EmbeddedDecisionModel

__all__ = ["MODEL_ID", "EmbeddedDecisionModel"]

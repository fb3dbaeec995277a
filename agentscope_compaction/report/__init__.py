"""A proposal as one HTML file that a person can judge it from; see :func:`to_html`."""

from agentscope_compaction.report.page import to_html

__all__ = ["to_html"]

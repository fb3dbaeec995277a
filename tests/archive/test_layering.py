"""The archive's place in the house: arrows point down only."""

import ast
from pathlib import Path

import pytest

import agentscope_compaction.archive

FOLDER = Path(agentscope_compaction.archive.__file__).parent
_BELOW = ("archive", "core", "environment", "errors")
"""What archive modules may import: each other and the layers below."""
LAZY = {"collect.py", "database.py", "operations.py", "schema.py", "store.py"}


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.name)
def test_imports_point_down(file: Path) -> None:
    """Archive modules import lower layers and each other; few import SQLAlchemy at the top."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, rest = node.module.partition(".")
            if package == "agentscope_compaction":
                assert rest.split(".")[0] in _BELOW, node.module
            assert package != "agentscope"
    top = {
        (node.module or "").split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)
    }
    top |= {a.name.split(".")[0] for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    assert "sqlalchemy" not in top or file.name in LAZY

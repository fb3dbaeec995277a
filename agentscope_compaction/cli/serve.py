"""``serve``: the HTTP service from the command line; the main command mounts ``serve_app``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from agentscope_compaction.cli.failures import CommandError
from agentscope_compaction.errors import ConfigurationError
from agentscope_compaction.models.env import Backend, decision_model_from_env

__all__ = ["serve", "serve_app"]

serve_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

_Host = Annotated[str, typer.Option(help="Address to listen on; others than loopback warn.")]
_Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes a free one.")]
_Model = Annotated[
    Backend | None, typer.Option(help="The decision model; default: what the environment says.")
]
_TokenEnv = Annotated[
    str | None,
    typer.Option(
        "--token-env", metavar="NAME", help="Environment variable that holds the bearer token."
    ),
]
_AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="A name to be asked under, beside localhost; repeatable; * for any.",
    ),
]


@serve_app.command()
def serve(
    host: _Host = "127.0.0.1",
    port: _Port = 8080,
    model: _Model = None,
    token_env: _TokenEnv = None,
    allow_host: _AllowHost = None,
) -> None:
    """Serve POST /compact_context until interrupted."""
    from agentscope_compaction import service

    token = _token(token_env)
    env = dict(os.environ)
    if model is not None:
        env["DECISION_MODEL_BACKEND"] = model.value
    decision_model = decision_model_from_env(env=env)
    try:
        service.serve(
            host,
            port,
            decision_model=decision_model,
            token=token,
            allowed_hosts=allow_host or None,
            close_model=True,
        )
    except OSError as error:
        why = str(error.strerror or error).partition(" (while")[0]
        raise CommandError(
            f"cannot listen on {host} port {port}: {why}; --host and --port name another place"
        ) from error


def _token(variable: str | None) -> str | None:
    """Read the token; a variable that was named but not set must not mean an open service."""
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if not token:
        raise ConfigurationError(
            f"--token-env names {variable}, which is not set or empty; put the token there"
        )
    return token

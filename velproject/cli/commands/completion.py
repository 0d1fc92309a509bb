"""`vel completion`: a script that lets a shell complete commands, options and files."""

from __future__ import annotations

import sys

import click
from click.shell_completion import get_completion_class

VARIABLE = "_VEL_COMPLETE"
"""The variable with which the script asks `vel` for completions."""


@click.command(short_help="Print a script that completes `vel` in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes `vel` in this shell.

    In bash: `source <(vel completion bash)`. In zsh, after compinit: `source <(vel completion
    zsh)`. In fish: `vel completion fish | source`.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"This version of click has no completion for {shell}.")
    try:
        script = found(ctx.find_root().command, {}, "vel", VARIABLE).source()
    except RuntimeError as error:
        # The script asks the installed shell for its version.
        raise click.ClickException(f"{shell}: {error}.") from None
    sys.stdout.write(f"{script.strip()}\n")


COMMANDS = (completion,)

"""The command line `gpubinder`: its commands, and how each one ends."""

from typing import Annotated

import typer

from deploy.commands import adopting, demo, proof, replay, run, slices
from deploy.commands.endings import CODES, LOG_CODES, PROOF_CODES

app = typer.Typer(
    name="gpubinder",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)

_WORK = "Serve a cluster"
_ASK = "Ask the log"
_TRY = "Try it"


def _version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"gpubinder {version('gpubinder')}")
        raise typer.Exit


@app.callback(epilog="`gpubinder COMMAND --help` shows examples and exit codes of each command.")
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda value: _version(wanted=value), is_eager=True, help="Say which version this is."
        ),
    ] = False,
) -> None:
    """Decides which node gives which GPUs to which virtual machine, [bold]once and provably[/].

    Begin with [bold]gpubinder demo[/]: seconds, and no cluster needed.
    """


app.command(rich_help_panel=_TRY, epilog=PROOF_CODES)(demo.demo)
app.command(rich_help_panel=_WORK, epilog=LOG_CODES)(run.run)
app.command(rich_help_panel=_WORK, epilog=CODES)(adopting.adopt)
app.command(rich_help_panel=_WORK, epilog=LOG_CODES)(adopting.void)
app.command(rich_help_panel=_ASK, epilog=LOG_CODES)(replay.explain)
app.command(rich_help_panel=_ASK, epilog=LOG_CODES)(replay.replay)
app.command(rich_help_panel=_ASK, epilog=PROOF_CODES)(proof.verify)
app.command("slice", rich_help_panel=_ASK, epilog=LOG_CODES)(slices.slice_)
app.command(rich_help_panel=_ASK, epilog=PROOF_CODES)(slices.rerun)


def main() -> None:
    """Run the command line."""
    app(prog_name="gpubinder")

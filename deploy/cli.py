"""The command line `gpubinder`: its commands, and how each one ends."""

from inspect import cleandoc
from typing import Annotated

import typer

from deploy.commands import adopting, commanding, demo, leaving, proof, replay, run, slices, status
from deploy.commands.endings import CODES, LOG_CODES, PROOF_CODES

app = typer.Typer(
    name="gpubinder",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
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


_COMMANDS = (
    (demo.demo, "demo", _TRY, PROOF_CODES, "See it work: a cluster in memory, seconds."),
    (run.run, "run", _WORK, LOG_CODES, "Watch a cluster, decide, write, answer admission."),
    (adopting.adopt, "adopt", _WORK, CODES, "Begin a log for a cluster, once."),
    (adopting.void, "void", _WORK, LOG_CODES, "Skip one input that nobody can read."),
    (commanding.pause, "pause", _WORK, LOG_CODES, "Place nothing for now; what runs goes on."),
    (commanding.resume, "resume", _WORK, LOG_CODES, "Place again."),
    (commanding.move, "move", _WORK, LOG_CODES, "Move held claims, or a VM not started yet, to another node."),
    (commanding.release, "release", _WORK, LOG_CODES, "End a booking that no running VM needs."),
    (commanding.unskip, "unskip", _WORK, LOG_CODES, "Try a VM again on nodes that did not take it."),
    (leaving.uninstall, "uninstall", _WORK, CODES, "Leave a cluster: nothing waits for us, nothing of ours is left."),
    (status.status, "status", _ASK, CODES, "Who leads, how far it decided, what the streams hold."),
    (replay.explain, "explain", _ASK, LOG_CODES, "Why a VM runs where it runs, or why it waits."),
    (replay.replay, "replay", _ASK, LOG_CODES, "The state as it stood at any place of the log."),
    (proof.verify, "verify", _ASK, PROOF_CODES, "Prove the log and every decision in it."),
    (slices.slice_, "slice", _ASK, LOG_CODES, "Cut a stretch of the log into one file."),
    (slices.rerun, "rerun", _ASK, PROOF_CODES, "Decide a slice again, on a laptop."),
)


def _flowed(text: str) -> str:
    """Let the terminal break the lines of a help text, but for those of its examples."""
    paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(one if one.startswith("[bold]Example") else " ".join(one.split()) for one in paragraphs)


for _command, _name, _panel, _codes, _short in _COMMANDS:
    app.command(_name, rich_help_panel=_panel, epilog=_codes, short_help=_short, help=_flowed(_command.__doc__ or ""))(
        _command
    )


def main() -> None:
    """Run the command line."""
    app(prog_name="gpubinder")

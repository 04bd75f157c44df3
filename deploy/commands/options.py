"""Options that commands share: how to reach NATS and the API server, how to print."""

import os
import re
from pathlib import Path
from typing import Annotated

import msgspec
import typer

NatsUrl = Annotated[
    str,
    typer.Option(
        "--nats",
        envvar="GPUBINDER_NATS_URL",
        metavar="URL",
        help="NATS server URLs, comma separated. Without it: a nats-server of our own, over --data.",
        rich_help_panel="NATS",
        show_default=False,
    ),
]
NatsCreds = Annotated[
    Path | None,
    typer.Option(
        "--nats-creds",
        envvar="GPUBINDER_NATS_CREDS",
        metavar="FILE",
        help="NATS credentials file.",
        rich_help_panel="NATS",
    ),
]
NatsCa = Annotated[
    Path | None,
    typer.Option(
        "--nats-ca", envvar="GPUBINDER_NATS_CA", metavar="FILE", help="CA file for NATS TLS.", rich_help_panel="NATS"
    ),
]
NatsCert = Annotated[
    Path | None,
    typer.Option(
        "--nats-cert",
        envvar="GPUBINDER_NATS_CERT",
        metavar="FILE",
        help="Client certificate for NATS TLS.",
        rich_help_panel="NATS",
    ),
]
NatsKey = Annotated[
    Path | None,
    typer.Option(
        "--nats-key",
        envvar="GPUBINDER_NATS_KEY",
        metavar="FILE",
        help="Key of the client certificate.",
        rich_help_panel="NATS",
    ),
]
NatsMonitors = Annotated[
    list[str] | None,
    typer.Option(
        "--nats-monitor",
        envvar="GPUBINDER_NATS_MONITOR",
        metavar="URL",
        help="Monitoring URL of a NATS server (http://nats-0:8222), to be asked whether it fsyncs every write; "
        "may be repeated.",
        rich_help_panel="NATS",
        show_default=False,
    ),
]
Store = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="GPUBINDER_NATS_STORE",
        metavar="SIZE",
        help="What JetStream may fill on each server, as its max_file_store says it (18GB): each log gets a limit of "
        "its own below that, and an alert tells before it is full. A limit is never lowered.",
        rich_help_panel="NATS",
        show_default=False,
    ),
]
DEFAULT_DATA = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "gpubinder"
Data = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="GPUBINDER_DATA",
        metavar="DIR",
        help="Where our own nats-server keeps its streams.",
        rich_help_panel="NATS",
        show_default="~/.local/state/gpubinder",
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        "--kubeconfig",
        envvar="KUBECONFIG",
        metavar="FILE",
        help="Kubeconfig file. Without it: in-cluster, then ~/.kube/config.",
        rich_help_panel="Cluster",
        show_default=False,
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context", metavar="NAME", help="Context of the kubeconfig.", rich_help_panel="Cluster", show_default=False
    ),
]
DEFAULT_NAMESPACE = "gpubinder-system"
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        envvar="GPUBINDER_NAMESPACE",
        metavar="NAME",
        help="Namespace of settings, leases and anchor.",
        rich_help_panel="Cluster",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, nothing else.")]


class NatsOptions(msgspec.Struct, frozen=True):
    """How to reach NATS: `url` empty means a server of our own over `data`."""

    url: str = ""
    creds: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    data: Path = DEFAULT_DATA
    monitors: tuple[str, ...] = ()


class KubeOptions(msgspec.Struct, frozen=True):
    """How to reach the API server."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = DEFAULT_NAMESPACE


_SIZE = re.compile(r"(\d+)([kmgt]?)(b|ib|i)?", re.IGNORECASE)
_POWERS = ("", "k", "m", "g", "t")


def size(text: str) -> int:
    """Return the bytes of a size as nats-server reads it: K is 1000, KB and KiB are 1024. Raises `BadParameter`."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or (found[3] and not found[2]):
        raise typer.BadParameter(f"{text!r} is no size: say it as nats-server does, for example 18GB")
    amount = int(found[1])
    for _ in range(_POWERS.index(found[2].lower())):
        amount *= 1024 if found[3] else 1000
    return amount

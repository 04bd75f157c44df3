"""`gpubinder status`: how an installation stands, at one look."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.markup import escape

from deploy.commands import options as o
from deploy.commands.endings import FAILED, OK, Failed, carry_out
from deploy.commands.terminal import add_rows, out, print_json, say, table

if TYPE_CHECKING:
    from deploy.standing import Standing

Cluster = Annotated[
    bool, typer.Option("--cluster/--no-cluster", help="Also ask the cluster who leads, and for the anchor.")
]


def status(
    *,
    cluster: Cluster = True,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
    kubeconfig: o.Kubeconfig = "",
    context: o.Context = "",
    namespace: o.Namespace = o.DEFAULT_NAMESPACE,
) -> None:
    """Say at one look [bold]how an installation stands[/]: who leads, how far it decided, what the streams hold.

    Only the ends of the streams and the leases are read, so it is quick, and proves nothing: that is what verify is
    for. Troubles are named last, and make the exit code 1.

    [bold]Examples[/]
      gpubinder status --nats nats://nats:4222
      gpubinder status --no-cluster                the log alone, without an API server
      gpubinder status --json | jq .log.waiting
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    kube = o.KubeOptions(kubeconfig, context, namespace) if cluster else None
    carry_out(_status(reach, kube, json=json))


async def _status(reach: o.NatsOptions, kube: o.KubeOptions | None, *, json: bool) -> int:
    from binder.kube_login import LoginError
    from deploy.commands.opening import open_kube, open_nats
    from deploy.standing import standing

    async with open_nats(reach) as opened:
        if kube is None:
            found = await standing(opened.journal, None, "")
        else:
            try:
                async with open_kube(kube) as client:
                    found = await standing(opened.journal, client, kube.namespace)
            except LoginError as error:
                raise Failed(f"{error}; or look at the log alone: --no-cluster") from None
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        _show(found)
    return FAILED if found.troubles else OK


def _show(found: "Standing") -> None:
    console, log = out(), found.log
    if log.log_id:
        console.print(
            f"log {log.log_id}, generation {log.generation}, epoch {log.epoch} of {escape(log.leader or '-')} "
            f"({escape(log.program)}, rules {log.rules})"
        )
        console.print(f"decided up to input {log.decided}, {log.waiting} behind it wait for a decision")
    if found.snapshot_inputs is not None:
        console.print(f"a restart folds {found.snapshot_inputs} inputs")
    console.print()
    if found.leases is not None:
        held = [(role, escape(holder) or "-") for role, holder in found.leases.items()]
        console.print(add_rows(table("role", "leads"), held))
        console.print()
    rows = [
        (
            one.name,
            str(one.last),
            f"{one.bytes / 1e6:.1f} MB",
            f"{one.bytes_max / 1e6:.0f} MB" if one.bytes_max else "-",
        )
        for one in found.streams
    ]
    console.print(add_rows(table("stream", "last", "holds", "at most"), rows))
    for trouble in found.troubles:
        say(console, f"[bold red]✗[/] {escape(trouble)}")
    if not found.troubles:
        say(console, "[green]✓[/] nothing stands in the way")

"""An operator's hand, decided and logged like the rest: `gpubinder pause`, `resume`, `move`, `release`, `unskip`."""

import getpass
import socket
from typing import Annotated

import typer

from deploy.commands import options as o
from deploy.commands.endings import FAILED, USAGE, Failed, carry_out
from deploy.commands.terminal import out, print_json, say
from schemas.reasons import Order

Who = Annotated[
    str,
    typer.Option("--who", metavar="NAME", help="Who decides this. Without it: your user and host.", show_default=False),
]
Patience = Annotated[
    int, typer.Option("--wait", metavar="SECONDS", min=1, help="How long to wait for the binder's answer.")
]


def pause(
    *,
    who: Who = "",
    wait: Patience = 30,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Place nothing until `gpubinder resume`: VMs are admitted and wait behind their gate, [bold]what runs goes on[/].

    The command stands in the log with who gave it, and holds over restarts and leaders. The setting `paused`
    in the settings ConfigMap pauses as well, and is ended there.

    [bold]Example[/]
      gpubinder pause --nats nats://nats:4222 --who "night shift"
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_say(reach, Order.PAUSE, who=who, wait=wait, json=json))


def resume(
    *,
    who: Who = "",
    wait: Patience = 30,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """End what `gpubinder pause` began: [bold]placing goes on[/], in the order of who waits longest.

    The answer says so where the settings ConfigMap still pauses placing.

    [bold]Example[/]
      gpubinder resume --nats nats://nats:4222
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_say(reach, Order.RESUME, who=who, wait=wait, json=json))


def move(
    *,
    what: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The held claim, or the VM.")],
    to: Annotated[
        str, typer.Option("--to", metavar="NODE", help="The node. Without it: the fullest other one with room.")
    ] = "",
    who: Who = "",
    wait: Patience = 30,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Move held claims, or a VM that has not started, to [bold]another node[/]; what runs is never touched.

    Claims that go together move together. A VM that is pinned and has not started is started anew, and skips its
    node for ten minutes. Where a launcher runs, or may run, the command fails and says so: stop the VM first.

    [bold]Examples[/]
      gpubinder move tenant-a/my-gpu --nats nats://nats:4222
      gpubinder move tenant-a/my-gpu --to node-7
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_say_of(reach, Order.MOVE, what, to, who=who, wait=wait, json=json))


def release(
    *,
    what: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The held claim, or the VM.")],
    who: Who = "",
    wait: Patience = 30,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """End a booking by hand: [bold]its units are free[/] for others; what runs is never touched.

    Held claims go Lost with those they go together with, and are bound anew after ten minutes at the earliest. A VM
    that waits for its pin is gathered anew; one that is pinned and has not started is started anew. Where a launcher
    runs, or may run, the command fails and says so: stop the VM first.

    [bold]Example[/]
      gpubinder release tenant-a/my-gpu --who "night shift" --nats nats://nats:4222
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_say_of(reach, Order.RELEASE, what, "", who=who, wait=wait, json=json))


def unskip(
    *,
    vm: Annotated[str, typer.Argument(metavar="NAMESPACE/VM", help="The VM that skips nodes.")],
    node: Annotated[str, typer.Argument(metavar="[NODE]", help="The node. Without it: all.", show_default=False)] = "",
    who: Who = "",
    wait: Patience = 30,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Let a VM be placed again on [bold]nodes that did not take its launcher[/].

    A node that refused a VM's launcher for lack of resources is skipped for that VM for ten minutes, or until it
    changes. `gpubinder explain` shows which nodes a waiting VM skips. Refusals that are ended so are forgotten.

    [bold]Examples[/]
      gpubinder unskip tenant-a/vm1
      gpubinder unskip tenant-a/vm1 node-7 --nats nats://nats:4222
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_say_of(reach, Order.UNSKIP, vm, node, who=who, wait=wait, json=json))


async def _say_of(
    reach: o.NatsOptions, order: Order, what: str, node: str, *, who: str, wait: int, json: bool
) -> int | None:
    namespace, slash, name = what.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failed(f"{what}: name it as NAMESPACE/NAME", USAGE)
    return await _say(reach, order, (namespace, name, node), who=who, wait=wait, json=json)


async def _say(
    reach: o.NatsOptions,
    order: Order,
    about: tuple[str, str, str] = ("", "", ""),
    *,
    who: str,
    wait: int,
    json: bool,
) -> int | None:
    """Hand the command to the log, and tell the answer; one that was not carried out is a failure."""
    from binder.commanding import command
    from deploy.commands.opening import open_nats
    from schemas.events import Command

    author = who.strip() or f"{getpass.getuser()}@{socket.gethostname()}"
    async with open_nats(reach) as opened:
        answer = await command(opened.journal, Command(order, author, *about), seconds=wait)
    if json:
        print_json({"order": str(order), "who": author, "done": answer.done, "answer": answer.answer})
    elif answer.done:
        say(out(), answer.answer)
    else:
        raise Failed(answer.answer)
    return None if answer.done else FAILED

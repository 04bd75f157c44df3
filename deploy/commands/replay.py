"""`gpubinder replay`, `explain`: the state as the log tells it, at any place, as a whole or for a VM or claim."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import typer

from deploy.commands import options as o
from deploy.commands.endings import FAILED, Failed, carry_out
from deploy.commands.terminal import err, out, print_json, progress

_SECOND_NS = 1_000_000_000

To = Annotated[int | None, typer.Option("--to", metavar="SEQ", help="Stop after this DECISIONS sequence.")]
ToEvent = Annotated[int | None, typer.Option("--to-event", metavar="SEQ", help="Stop after this EVENTS sequence.")]
ToTime = Annotated[
    str,
    typer.Option(
        "--to-time",
        metavar="TIME",
        help="Stop at this time, ISO 8601 (UTC unless it says otherwise).",
        show_default=False,
    ),
]


def replay(
    *,
    to: To = None,
    to_event: ToEvent = None,
    to_time: ToTime = "",
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Fold the log into the state [bold]as it stood at any place[/]: who holds which units, who waits and why.

    The whole log is read from its first message and checked on the way. Digest and hash are the same for
    everyone who replays to the same place: compare them with a colleague's, or with a slice's.

    [bold]Examples[/]
      gpubinder replay                            as the log stands now
      gpubinder replay --to 4711                  after DECISIONS message 4711
      gpubinder replay --to-event 90210           after EVENTS message 90210, within its frame
      gpubinder replay --to-time 2026-05-03T12:00 who had which GPU then
      gpubinder replay --json | jq .digest
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_replay(reach, to, to_event, to_time, json=json))


async def _replay(reach: o.NatsOptions, to: int | None, to_event: int | None, to_time: str, *, json: bool) -> None:
    from binder.explain import every_claim, held
    from binder.rewind import Where, stand_at
    from binder.snapshot import encode_state, state_digest
    from deploy.commands import showing
    from deploy.commands.opening import open_nats

    if sum(chosen not in (None, "") for chosen in (to, to_event, to_time)) > 1:
        raise Failed("choose one of --to, --to-event and --to-time", 2)
    where = Where(to, to_event, stamp_of(to_time) if to_time else None)
    async with open_nats(reach) as opened:
        with progress(err()) as bar:
            task = bar.add_task("replaying")
            stand = await stand_at(opened.journal, where, seen=lambda at, of: bar.update(task, completed=at, total=of))
    book, tip = stand.book, stand.tip
    if json:
        print_json(
            {
                "log": tip.log_id,
                "generation": tip.generation,
                "decisions": tip.sequence,
                "events": book.state.events_seq,
                "stamp_ns": book.state.stamp_ns,
                "hash": tip.hash.hex(),
                "digest": state_digest(book.state),
                "state": msgspec.Raw(encode_state(book.state)),
            }
        )
        return
    console = out()
    console.print(showing.place_line(book, tip.log_id, tip.sequence))
    console.print()
    sets = [gpu_set for gpu_set, _ in held(book)]
    if sets:
        console.print(showing.sets_table(book, sets, wide=console.width >= 120))
    else:
        console.print("no VM holds or awaits a unit")
    claims = every_claim(book)
    if claims:
        console.print()
        console.print(showing.claims_table(claims))
    console.print()
    console.print(showing.nodes_table(book))


def stamp_of(text: str) -> int:
    """Return a time in nanoseconds since 1970. Raises `Failed`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Failed(f"--to-time {text}: not a time; write it as 2026-05-03T12:00:00", 2) from None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(aware.timestamp()) * _SECOND_NS


def explain(
    *,
    what: Annotated[
        str, typer.Argument(metavar="NAMESPACE/NAME", help="The VM or bare VMI, else the held claim of that name.")
    ],
    claim: Annotated[bool, typer.Option("--claim", help="The held claim, also where a VM has its name.")] = False,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", help="As it stood after this DECISIONS sequence.")
    ] = None,
    json: o.Json = False,
    nats: o.NatsUrl = "",
    nats_creds: o.NatsCreds = None,
    nats_ca: o.NatsCa = None,
    nats_cert: o.NatsCert = None,
    nats_key: o.NatsKey = None,
    data: o.Data = o.DEFAULT_DATA,
) -> None:
    """Say where a VM runs or [bold]why it waits[/], node by node, from the log alone; the same of held claims.

    The tests are the ones that decide. What a node is short of is named; nodes are listed nearest first. A place in
    line is told here alone: everyone's changes with each that is placed, so that no condition shows it.

    [bold]Examples[/]
      gpubinder explain tenant-a/train-1
      gpubinder explain tenant-a/train-1 --at 4711   why it waited back then
      gpubinder explain tenant-a/my-gpu              a held claim
    """
    reach = o.NatsOptions(nats, nats_creds, nats_ca, nats_cert, nats_key, data)
    carry_out(_explain(reach, what, at, claim=claim, json=json))


async def _explain(reach: o.NatsOptions, what: str, at: int | None, *, claim: bool, json: bool) -> int:
    from binder import explain as explaining
    from binder.rewind import Where, stand_at
    from binder.snapshots import StateSnapshots
    from deploy.commands import showing
    from deploy.commands.opening import open_nats, program

    namespace, slash, name = what.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failed(f"{what}: name it as NAMESPACE/NAME", 2)
    async with open_nats(reach) as opened:
        snapshot = await StateSnapshots(opened.journal, program()).newest()
        stand = await stand_at(opened.journal, Where(at), snapshot)
    found = explaining.explain(stand.book, namespace, name, claim=claim)
    if json:
        print_json({"decisions": stand.tip.sequence, "events": stand.book.state.events_seq, "explanation": found})
        return FAILED if found.phase == "Unknown" else 0
    if found.phase == "Unknown":
        raise Failed(f"{what}: {found.summary}, at DECISIONS {stand.tip.sequence}")
    console = out()
    console.print(showing.told(found, width=console.width))
    return 0

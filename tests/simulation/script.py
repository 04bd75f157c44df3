"""A seed's script: the setting, the acts and their waits; which sorts of trouble there are is drawn too."""

import random
from collections.abc import Callable, Sequence

from schemas.admission import ORDER_PATH, WRITE_PATH
from schemas.reasons import Order
from tests.simulation.acts import budgets as b
from tests.simulation.acts import holders as h
from tests.simulation.acts import licences as lic
from tests.simulation.acts import machines as m
from tests.simulation.acts import strangers as s
from tests.simulation.acts import tenants as t
from tests.simulation.acts import troubles as u
from tests.simulation.acts import writers as wr
from tests.simulation.acts.act import Act, Step
from tests.simulation.cluster import Setting
from tests.simulation.labels import CARD, OTHER_NAME, TWIN
from tests.simulation.takeover import ALL, COVERED, FEWER, WHOLE, Loss

VMS = 7
CLAIMS = 4
WAITS_S = (0.0, 0.0, 0.02, 0.2, 0.5, 1.0, 1.0, 2.0, 4.0, 7.0)
ROLES = ("binder-1", "binder-2", "ingest-1", "ingest-2", "projector-1", "projector-2", "webhooks-1", u.LEADER, u.LEADER)
REASONS = ("UnexpectedAdmissionError", "OutOfcpu")
LATE_S = (0.0, 1.0, 10.0)
LONG_WAITS_S = (65.0, 130.0, 330.0)
"""Longer than what the program waits for before it gives up a pod, or a node."""
LONG_SHARE = 0.05
AWAITS = (1, 3, 10, 30, 100, 300)
KINDS = ("lost", "lost answer", "late")
CODES = (0, 0, 409, 422, 429, 500, 503)

SCARRED = 0.4
"""In so many of the worlds with more than one node there is one that stays as it is when all others are healed."""

FAREWELLS = 0.15
"""So many worlds end with everybody gone."""

Drawn = Callable[[random.Random, Setting], Act]
Sort = tuple[tuple[int, Drawn], ...]
"""Weight and maker of each act of a sort."""


def _vm(chance: random.Random) -> int:
    return chance.randrange(VMS)


def _user(chance: random.Random, vm: int) -> t.CreateVm:
    """Return a VM that names claims of its tenant, alone or beside class entries."""
    claims = [vm % 2 + 2 * number for number in chance.sample(range(CLAIMS // 2), chance.choice((1, 1, 2)))]
    ask = chance.choice((t.NOTHING, t.NOTHING, 0, 4))
    return t.CreateVm(vm, ask, chance.choice((0, 0, 0, 1, 2)), claims=tuple(claims))


def _limits(chance: random.Random, *, unread: bool = False) -> tuple[tuple[int, int], ...]:
    """Return a budget's limits of some keys: small ones, so that they bind; now and then one that can't be read."""
    keys = sorted(chance.sample(range(len(b.KEYS)), chance.choice((1, 1, 2, 3))))
    choices = (0, 1, 1, 2, 2, 3, 4, *([b.UNREADABLE] * 2 if unread else ()))
    return tuple((key, chance.choice(choices)) for key in keys)


def _loss(chance: random.Random) -> Loss:
    """Return what is left of a log."""
    kept = chance.choice((0, 0, 300, 800, WHOLE))
    return Loss(kept, chance.random() < 0.7, chance.random() < 0.5, chance.choice((COVERED, COVERED, ALL, FEWER)))


def _node(chance: random.Random, setting: Setting) -> int:
    return chance.randrange(len(setting.cards))


TENANTS: Sort = (
    (9, lambda c, _: t.CreateVm(_vm(c), c.randrange(8), c.choice((0, 0, 0, 1, 2)), c.choice((0, 0, 0, 0, 1, 2, 3)))),
    (3, lambda c, _: t.StopVm(_vm(c))),
    (3, lambda c, _: t.StartVm(_vm(c))),
    (3, lambda c, _: t.DeleteVm(_vm(c))),
    (2, lambda c, _: t.RestartVmi(_vm(c))),
    (1, lambda c, _: t.DeleteLauncher(_vm(c), c.choice((0, 1, 5)))),
    (2, lambda c, _: t.GuestEnds(_vm(c), c.choice(("Succeeded", "Failed")))),
    (1, lambda c, _: t.DeleteClaim(_vm(c))),
)
HOLDERS: Sort = (
    (8, lambda c, _: h.OrderClaim(c.randrange(CLAIMS), c.choice(("card", "card", "slice")), c.choice((1, 1, 2)))),
    (1, lambda c, _: h.GiveBack(c.randrange(CLAIMS))),
    (5, lambda c, _: _user(c, _vm(c))),
    (2, lambda c, _: t.StopVm(_vm(c))),
    (2, lambda c, _: t.StartVm(_vm(c))),
    (1, lambda c, _: t.DeleteVm(_vm(c))),
    (1, lambda c, _: t.RestartVmi(_vm(c))),
)
NAMESPACES: Sort = (
    (1, lambda c, _: h.DeleteNamespace(c.randrange(2))),
    (2, lambda c, _: h.CreateNamespace(c.randrange(2))),
)
OPERATOR: Sort = (
    (1, lambda _, __: h.Say(Order.PAUSE)),
    (2, lambda _, __: h.Say(Order.RESUME)),
    (1, lambda c, _: h.SayOfVm(Order.UNSKIP, _vm(c))),
    (2, lambda c, w: h.SayOfVm(Order.MOVE, _vm(c), c.choice((None, _node(c, w))))),
    (2, lambda c, _: h.SayOfVm(Order.RELEASE, _vm(c))),
    (2, lambda c, w: h.SayOfClaim(Order.MOVE, c.randrange(CLAIMS), c.choice((None, _node(c, w))))),
    (2, lambda c, _: h.SayOfClaim(Order.RELEASE, c.randrange(CLAIMS))),
)
CLASSES: Sort = (
    (2, lambda c, _: t.DeleteClass(c.choice(("card", "slice", TWIN)))),
    (4, lambda c, _: t.CreateClass(c.choice(("card", "slice", TWIN)))),
    (2, lambda c, _: h.EditClass("card", c.choice((CARD, OTHER_NAME)))),
    (1, lambda c, _: h.EditClass(TWIN, c.choice((CARD, OTHER_NAME)))),
    (1, lambda c, _: h.EditClass(c.choice(("card", "slice")), most=c.choice((1, 2, 4)))),
    (1, lambda c, _: h.EditClass(c.choice(("card", "slice", TWIN)), tolerates=c.random() < 0.5)),
    (2, lambda c, _: t.CreateVm(_vm(c), t.NOTHING - 1)),
    (1, lambda c, _: h.OrderClaim(c.randrange(CLAIMS), TWIN)),
)
NODES: Sort = (
    (2, lambda c, w: m.NodeDown(_node(c, w), c.random() < 0.7)),
    (3, lambda c, w: m.NodeUp(_node(c, w))),
    (1, lambda c, w: m.Evict(_node(c, w))),
    (1, lambda c, w: m.Reboot(_node(c, w), c.choice((1.0, 8.0)), c.choice((0.0, 3.0)))),
    (2, lambda c, w: m.PluginLost(_node(c, w), c.choice(LATE_S))),
    (3, lambda c, w: m.PluginBack(_node(c, w), c.choice(LATE_S))),
    (1, lambda c, w: m.PluginFlaps(_node(c, w), c.choice((2, 5)), c.choice((1.0, 4.0)), c.choice(LATE_S))),
    (4, lambda c, w: m.Refuses(_node(c, w), c.choice(REASONS))),
    (1, lambda c, w: m.Refuses(_node(c, w))),
    (1, lambda c, w: m.UnitsLost(_node(c, w), c.choice((0, 1)), c.choice(LATE_S))),
    (1, lambda c, w: m.Renamed(_node(c, w))),
    (1, lambda c, w: m.Taint(_node(c, w), c.random() < 0.5)),
    (2, lambda c, w: m.Untaint(_node(c, w))),
    (1, lambda c, w: m.Cordon(_node(c, w))),
    (1, lambda c, w: m.Relabel(_node(c, w), c.choice((1, 2)))),
    (1, lambda c, w: m.RemoveNode(_node(c, w), c.choice((0.0, 40.0)))),
    (2, lambda c, w: m.AddNode(_node(c, w), c.random() < 0.5)),
)
STRANGERS: Sort = (
    (3, lambda c, w: s.Grab(c.randrange(3), _node(c, w), c.choice((1, 2)), c.random() < 0.3)),
    (3, lambda c, _: s.LetGo(c.randrange(3))),
    (1, lambda c, _: s.GateLaunchers(_vm(c))),
    (2, lambda c, _: s.Ungate(_vm(c))),
    (2, lambda c, _: s.Narrow(_vm(c), c.choice((1, 2)))),
    (1, lambda _, __: s.Pause(True)),
    (2, lambda _, __: s.Pause(False)),
)
CRASHES: Sort = (
    (3, lambda c, _: u.Crash(c.choice(ROLES), c.choice(AWAITS))),
    (2, lambda c, _: u.Freeze(c.choice(ROLES), c.choice((0.5, 3.0, 5.0, 9.0)), c.choice(AWAITS))),
    (2, lambda c, _: u.LastWords(c.choice(ROLES), c.choice((1.0, 6.0, 10.0)))),
)
API: Sort = (
    (3, lambda c, _: u.ApiRefuses(c.choice(CODES), c.choice((0.2, 0.6)), c.choice((1.0, 5.0)), _role(c))),
    (1, lambda c, _: u.ApiAway(c.choice((1.0, 4.0)), _role(c))),
    (2, lambda c, _: u.Slow(c.choice(("api", "watch")), c.choice((0.3, 2.0)), c.choice((2.0, 6.0)), _role(c))),
    (2, lambda c, _: u.CutWatches(c.random() < 0.5)),
)
RESTORES: Sort = (
    (2, lambda _, __: u.Backup()),
    (1, lambda c, _: u.Restore(c.choice((0, 0, 1_000_000)))),
)
LOSSES: Sort = ((1, lambda c, _: u.LogLost(_loss(c))),)
KUBEVIRTS: Sort = ((1, lambda c, _: u.KubeVirtAway(c.choice((2.0, 20.0, 120.0)))),)
LICENCES: Sort = (
    (4, lambda c, _: lic.Entitle(c.randrange(2), c.random() < 0.75)),
    (3, lambda c, _: lic.NeedLicence(needs=c.random() < 0.8)),
    (3, lambda c, _: lic.WriteLicence(c.choice((0, 1, 1, 2, 2)))),
    (1, lambda _, __: lic.DropLicence()),
    (3, lambda c, _: lic.Tamper(c.randrange(2), c.choice(("change", "delete", "unlabel", "own")))),
)
JOURNAL: Sort = (
    (1, lambda c, _: u.JournalAway(c.choice((0.5, 3.0)), _role(c))),
    (
        3,
        lambda c, _: u.Publishes(
            c.choice(KINDS), c.choice((0.2, 0.6)), c.choice((1.0, 5.0)), _role(c), c.choice((1.0, 6.0))
        ),
    ),
    (1, lambda c, _: u.Slow("journal", c.choice((0.3, 2.0)), c.choice((2.0, 6.0)), _role(c))),
    (1, lambda c, _: u.StampJump(c.choice((-50.0, -5.0, 5.0, 40.0)))),
)
BUDGETS: Sort = (
    (6, lambda c, _: b.SetBudget(c.randrange(3), _limits(c), c.choice((0, 0, 1)))),
    (2, lambda c, _: b.DropBudget(c.randrange(3), c.choice((0, 0, 1)))),
    (2, lambda c, _: b.Release(c.randrange(2), _limits(c, unread=True))),
    (1, lambda c, _: b.DropRelease(c.randrange(2))),
)
WRITERS: Sort = (
    (6, lambda c, _: wr.CreateSet(c.randrange(4), c.choice((0, 0, 2, 4, 6)), c.choice((0, 1, 1, 2, 3)))),
    (5, lambda c, _: wr.Rescale(c.randrange(4), c.choice((0, 1, 2, 3, 5)))),
    (2, lambda c, _: wr.DropSet(c.randrange(4))),
    (4, lambda c, _: wr.EditVm(_vm(c), c.randrange(t.NOTHING))),
    (3, lambda c, _: wr.BareVmi(c.randrange(4), c.choice((0, 2, 4)), c.random() < 0.3)),
    (2, lambda c, _: wr.DropBareVmi(c.randrange(4))),
    (2, lambda c, _: wr.TryOut(c.randrange(4), c.randrange(6), c.random() < 0.5)),
    (1, lambda c, _: wr.Bar(c.randrange(4))),
    (1, lambda c, _: wr.Bar(c.randrange(4), bars=False)),
    (1, lambda c, _: wr.Touch(c.random() < 0.6)),
)
DESK: Sort = (
    (3, lambda c, _: wr.DeskTrouble(c.choice(("away", "lost")), c.choice((0.3, 1.0)), c.choice((1.0, 6.0)), _path(c))),
    (2, lambda c, _: wr.DeskTrouble("late", c.choice((0.3, 1.0)), 6.0, _path(c), c.choice((1.0, 4.0, 7.0)))),
)
SORTS: dict[str, tuple[Sort, float, int]] = {
    "tenants": (TENANTS, 1.0, 10),
    "holders": (HOLDERS, 0.6, 7),
    "classes": (CLASSES, 0.3, 3),
    "namespaces": (NAMESPACES, 0.15, 1),
    "operator": (OPERATOR, 0.35, 2),
    "nodes": (NODES, 0.6, 4),
    "strangers": (STRANGERS, 0.5, 3),
    "crashes": (CRASHES, 0.5, 3),
    "api": (API, 0.5, 2),
    "restores": (RESTORES, 0.15, 2),
    "journal": (JOURNAL, 0.5, 2),
    "budgets": (BUDGETS, 0.4, 4),
    "writers": (WRITERS, 0.4, 5),
    "desk": (DESK, 0.25, 1),
    "losses": (LOSSES, 0.25, 1),
    "licences": (LICENCES, 0.2, 3),
    "kubevirts": (KUBEVIRTS, 0.15, 1),
}
"""Each sort of act: in how many worlds it happens, and how often there beside the others."""


def _role(chance: random.Random) -> str:
    return chance.choice(("", "binder", "ingest", "projector", "webhooks"))


def _path(chance: random.Random) -> str:
    return chance.choice(("", "", WRITE_PATH, ORDER_PATH))


def setting_of(seed: int) -> Setting:
    """Return what the seed's world begins with."""
    chance = random.Random(f"setting {seed}")
    nodes = chance.choice((1, 2, 2, 3))
    return Setting(
        cards=tuple(chance.randrange(1, 4) for _ in range(nodes)),
        slices=tuple(chance.choice((0, 2, 4)) for _ in range(nodes)),
        binders=chance.choice((1, 2)),
        projectors=chance.choice((1, 1, 2)),
        ingests=chance.choice((1, 1, 2)),
        webhooks=chance.choice((1, 2)),
        lag_s=chance.choice((0.0, 0.0, 1.5)),
        boot_s=chance.choice((0.0, 2.0)),
        snapshot_every=chance.choice((5, 40, 20_000)),
        schedule_s=chance.choice((0.0, 0.0, 0.5, 4.0)),
        start_s=chance.choice((0.0, 0.0, 2.0, 15.0)),
        stop_s=chance.choice((0.0, 0.0, 3.0)),
        scarred=chance.randrange(nodes) if nodes > 1 and chance.random() < SCARRED else None,
        permits=chance.random() < 0.5,
    )


def script_of(seed: int, steps: int, sorts: Sequence[str] = ()) -> list[Step]:
    """Return the seed's acts: of the sorts that the seed draws, or of those named alone."""
    setting, chance = setting_of(seed), random.Random(f"script {seed}")
    # Each sort by itself: one more changes nothing of the worlds without it.
    drawn = [name for name, (_, share, _) in SORTS.items() if random.Random(f"{name} {seed}").random() < share]
    chosen = [SORTS[name] for name in sorts or drawn]
    script = []
    for _ in range(steps):
        (sort,) = chance.choices([one for one, _, _ in chosen], [weight for _, _, weight in chosen])
        (make,) = chance.choices([one for _, one in sort], [weight for weight, _ in sort])
        long = "nodes" in (sorts or drawn) and chance.random() < LONG_SHARE
        script.append(Step(make(chance, setting), chance.choice(LONG_WAITS_S if long else WAITS_S)))
    if random.Random(f"farewell {seed}").random() < FAREWELLS:
        script.append(Step(wr.Farewell(), 5.0))
    return script

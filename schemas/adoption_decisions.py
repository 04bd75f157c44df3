"""What the binder decided when it took over a cluster that already runs: booked as it stood there (T4)."""

from schemas.decided import Decided, HeldClaim, TemplateClaim, VmiId
from schemas.reasons import Unkept


class LauncherAdopted(Decided, frozen=True, tag="launcher-adopted"):
    """Launchers that wait behind our gate since before count as admitted: `requests` are the stamps on them (T25)."""

    vmi: VmiId
    requests: tuple[str, ...]


class SetAdopted(Decided, frozen=True, tag="set-adopted"):
    """A launcher that was let go before has its VMI's whole set on its node: booked as it stands, and not pinned again.

    `former`: the temporary pod that it shares the booking with, '' where there is none.
    """

    vmi: VmiId
    node: str
    pod: str
    pod_uid: str
    claims: tuple[TemplateClaim, ...] = ()
    held: tuple[HeldClaim, ...] = ()
    former: str = ""


class HeldAdopted(Decided, frozen=True, tag="held-adopted"):
    """Held claims that no launcher uses are where their status says; without a node they are Lost, for that reason."""

    namespace: str
    claims: tuple[HeldClaim, ...]
    node: str = ""
    lost: Unkept | None = None
    message: str = ""


class Adopted(Decided, frozen=True, tag="adopted"):
    """All that was found is booked: from here on the binder decides as always."""

    sets: int
    held: int

"""What a VMI's volumes say about starting it: ready, waiting for a first consumer, missing, failed."""

import msgspec

from deploy.world.informer import Informer
from deploy.world.launcher_parts import claim_name
from deploy.world.manifests import Obj, controller_of, dig, meta
from deploy.world.virt_names import WFFC

_PENDING_POPULATION = "PendingPopulation"
_STILL = frozenset({"", "Pending", "Succeeded", "Failed", WFFC, _PENDING_POPULATION})


class Volumes(msgspec.Struct, frozen=True):
    """The facts about all PVC volumes of one VMI. `missing`: the PVC that does not exist, or ''.

    `wffc`: a DataVolume waits for its first consumer, which is what a temporary pod is for. `unbound`: some
    PVC that exists has no volume yet. `filling`: a DataVolume is being written.
    """

    data_volumes: int = 0
    succeeded: bool = True
    ready: bool = True
    wffc: bool = False
    unbound: bool = False
    filling: bool = False
    failed: bool = False
    missing: str = ""


def read_volumes(spec: Obj, namespace: str, claims: Informer, data_volumes: Informer) -> Volumes:
    """Return what the volumes of a VMI spec say, through the caches of PVCs and DataVolumes."""
    count = 0
    succeeded = ready = True
    wffc = failed = unbound = filling = False
    missing = ""
    for volume in spec.get("volumes") or ():
        name = claim_name(volume)
        if not name:
            continue
        claim = claims.get(namespace, name)
        if claim is None:
            # A DataVolume makes its claim in a moment; a plain claim that is missing is an error.
            if "dataVolume" in volume:
                ready = succeeded = False
            else:
                missing = missing or name
            continue
        unbound |= dig(claim, "status", "phase") != "Bound"
        owner = controller_of(claim)
        source = data_volumes.get(namespace, owner["name"]) if owner and owner.get("kind") == "DataVolume" else None
        if source is None:
            continue
        count += 1
        phase = dig(source, "status", "phase") or ""
        succeeded &= phase == "Succeeded"
        wffc |= phase == WFFC
        failed |= phase == "Failed"
        filling |= phase not in _STILL
        ready &= phase in {"Succeeded", WFFC, _PENDING_POPULATION}
    return Volumes(
        data_volumes=count,
        succeeded=succeeded,
        ready=ready,
        wffc=wffc and not failed,
        unbound=unbound,
        filling=filling,
        failed=failed,
        missing=missing,
    )


def users_of(claim: Obj, vmis: Informer) -> list[Obj]:
    """Return the VMIs of the claim's namespace that name it, or a DataVolume of its name."""
    namespace, name = meta(claim).get("namespace"), meta(claim)["name"]
    return [
        vmi
        for vmi in vmis
        if meta(vmi).get("namespace") == namespace
        and any(claim_name(volume) == name for volume in vmi["spec"].get("volumes") or ())
    ]

"""What speaks against a start under policy Refuse before any node is asked, and the sentence where none has a place."""

from binder.rules.gpu_sets import Objection, asked_for, devices_of, mark_of, read_entries, resolved
from binder.rules.objections import first_objection
from schemas import names
from schemas.decisions import GpuEntry, Refused
from schemas.events import StartRequest
from schemas.reasons import Refusal


def answer_start(request: StartRequest) -> Refused | None:
    """Return why a VMI can't start whatever the nodes have, None where room decides.

    It is asked about as it will be stored, after every mutator: what was right when the entries were written may be
    otherwise by now, and devices that are not exactly the set's would be a launcher that no booking fits.
    """
    entries = read_entries(request.asked.gpus)
    if isinstance(entries, Objection):
        return refusal(request, entries.reason, entries.sentence)
    said = first_objection(request.asked, entries)
    if said is not None:
        return refusal(request, said.reason, said.sentence)
    devices = devices_of(resolved(asked_for(request.asked, entries)))
    if request.asked.bound_gpus != tuple(mark_of(device.name, device.device_name) for device in devices):
        return refusal(
            request,
            Refusal.NOT_COMPLETE,
            f"reaches the API server without the GPU devices that the annotation {names.GPUS_ANNOTATION} gives: "
            "another webhook changed it after ours; ask the platform operator which",
        )
    return None


def entries_of(request: StartRequest) -> tuple[GpuEntry, ...]:
    """Return the entries as they were resolved for the request; none where they can't be read."""
    entries = read_entries(request.asked.gpus)
    return () if isinstance(entries, Objection) else resolved(asked_for(request.asked, entries))


def refusal(request: StartRequest, reason: Refusal, sentence: str) -> Refused:
    """Return the refusal of a start: its sentence goes on after the VMI's name."""
    vmi = request.vmi
    return Refused(request.request, vmi.namespace, vmi.name, reason, f"VMI {vmi.namespace}/{vmi.name} {sentence}")

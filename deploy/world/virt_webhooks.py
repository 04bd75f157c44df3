"""virt-api's webhooks as AdmissionReview in, AdmissionReview out.

One set for both worlds: the model API server registers `hooks`, tests serve the same reviews over TLS
under the same configuration names, `virt-api-mutator` and `virt-api-validator`.
"""

import base64
from collections.abc import Callable, Sequence

from binder.kube import Cause
from deploy.world.admission import Hook, Review
from deploy.world.clock import Clock
from deploy.world.manifests import Obj, copied, encode, has_finalizer, meta
from deploy.world.virt_api import mutate_vmi_create, validate_vmi_create
from deploy.world.virt_api_update import mutate_vm, mutate_vmi_update, validate_vm, validate_vmi_update
from deploy.world.virt_config import Config
from deploy.world.virt_names import MIGRATION_FINALIZER, MIGRATION_VMI_LABEL, VMIM
from schemas.kinds import VM, VMI, Resource

MUTATOR = "virt-api-mutator"
VALIDATOR = "virt-api-validator"
WATCHED: tuple[tuple[Resource, tuple[str, ...]], ...] = (
    (VM, ("CREATE", "UPDATE")),
    (VMI, ("CREATE", "UPDATE")),
    (VMIM, ("CREATE",)),
)
"""What both configurations are asked about."""


class VirtApi:
    """virt-api with KubeVirt's configuration of the moment. `namespace`: KubeVirt's own."""

    def __init__(self, config: Callable[[], Config], clock: Clock, *, namespace: str = "kubevirt") -> None:
        self._config = config
        self._clock = clock
        self._namespace = namespace

    async def mutate(self, review: Obj) -> Obj:
        """Answer a mutating review: the changed top-level fields, replaced whole, as virt-api does."""
        request: Obj = review["request"]
        new = self._mutated(request, request["object"])
        patch = [
            {"op": "add", "path": f"/{field}", "value": new[field]}
            for field in ("metadata", "spec", "status")
            if field in new and new[field] != request["object"].get(field)
        ]
        patch += [{"op": "remove", "path": f"/{field}"} for field in request["object"] if field not in new]
        response: Obj = {"uid": request["uid"], "allowed": True}
        if patch:
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(encode(patch)).decode()}
        return _answer(response)

    async def validate(self, review: Obj) -> Obj:
        """Answer a validating review: 422 with every cause, or nothing against it."""
        request: Obj = review["request"]
        causes = self._causes(request)
        if not causes:
            return _answer({"uid": request["uid"], "allowed": True})
        return _answer({"uid": request["uid"], "allowed": False, "status": _refused(causes)})

    def _mutated(self, request: Obj, new: Obj) -> Obj:
        plural, created = request["resource"]["resource"], request["operation"] == "CREATE"
        if plural == VM.plural:
            return mutate_vm(new)
        if plural == VMIM.plural:
            return mutate_migration(new)
        if created:
            # The request names the namespace even where the body does not.
            placed = new | {"metadata": meta(new) | {"namespace": request["namespace"]}}
            return mutate_vmi_create(placed, self._config(), now=self._clock.now())
        user = request["userInfo"]["username"]
        return mutate_vmi_update(request["oldObject"], new, user=user, namespace=self._namespace)

    def _causes(self, request: Obj) -> tuple[Cause, ...]:
        new: Obj = request["object"]
        plural = request["resource"]["resource"]
        if plural == VM.plural:
            return validate_vm(new)
        if plural == VMIM.plural:
            return ()
        if request["operation"] == "CREATE":
            return validate_vmi_create(new, self._config())
        user = request["userInfo"]["username"]
        return validate_vmi_update(request["oldObject"], new, user=user, namespace=self._namespace)

    def hooks(self) -> tuple[Hook, Hook]:
        """Return both webhooks for the model API server."""
        places = tuple(f"{resource.plural}.{resource.group}" for resource, _ in WATCHED)
        return _hook(MUTATOR, self.mutate, places, mutating=True), _hook(VALIDATOR, self.validate, places)


def _hook(name: str, review: Review, places: tuple[str, ...], *, mutating: bool = False) -> Hook:
    return Hook(name=name, review=review, resources=places, mutating=mutating)


def mutate_migration(migration: Obj) -> Obj:
    """Return a migration as virt-api hands it on: its finalizer, and the VMI's name as a label."""
    new = copied(migration)
    meta(new).setdefault("labels", {})[MIGRATION_VMI_LABEL] = new["spec"]["vmiName"]
    if not has_finalizer(new, MIGRATION_FINALIZER):
        meta(new)["finalizers"] = [*(meta(new).get("finalizers") or ()), MIGRATION_FINALIZER]
    return new


def _refused(causes: Sequence[Cause]) -> Obj:
    return {
        "code": 422,
        "reason": "Invalid",
        "message": ", ".join(cause.reason for cause in causes),
        "details": {
            "causes": [
                {"reason": "FieldValueInvalid", "field": cause.field, "message": cause.reason} for cause in causes
            ]
        },
    }


def _answer(response: Obj) -> Obj:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

"""Our webhooks at the model API server: whom it asks, and of what, as the configuration objects say.

The real server evaluates match conditions as CEL; here each is a function of the request, by its name.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from deploy.world.admission import Hook
from deploy.world.manifests import Obj, decode, dig, encode
from schemas.admission import (
    ACCOUNTS_GROUP,
    CONTROL_PLANE_GROUP,
    CONTROLLER_MANAGER,
    CREATE,
    ORDER_PATH,
    POD_PATH,
    SCALE,
    START_PATH,
    VMI_PATH,
    WRITE_PATH,
)
from schemas.names import GPUS_ANNOTATION, POLICY_ANNOTATION, POLICY_REFUSE, TEMPLATE_LABEL
from webhooks.configuration import webhook_configuration
from webhooks.orders import NOT_OURS
from webhooks.registration import validating
from webhooks.service import Webhooks
from webhooks.starts import UNDER_REFUSE
from webhooks.verdicts import Verdict
from webhooks.writes import ASKS_FOR_MORE, NOT_GOING, TEMPLATES

IN_PROCESS = "https://in-process"

Doors = dict[str, Callable[[Webhooks, bytes], Coroutine[Any, Any, Verdict]]]
DOORS: Doors = {
    VMI_PATH: lambda webhooks, body: webhooks.vmi_verdict(body),
    POD_PATH: lambda webhooks, body: webhooks.pod_verdict(body),
    START_PATH: lambda webhooks, body: webhooks.start_verdict(body),
    WRITE_PATH: lambda webhooks, body: webhooks.write_verdict(body),
    ORDER_PATH: lambda webhooks, body: webhooks.order_verdict(body),
}
"""What answers, by the path that a configuration names, as `webhooks.server` has it."""


def entries(home: str) -> list[Obj]:
    """Return every webhook of the program in the namespace `home`, as its configuration objects list them."""
    mutating: list[Obj] = webhook_configuration(IN_PROCESS, b"")["webhooks"]
    return [*mutating, *validating(IN_PROCESS, b"", home)["webhooks"]]


def path_of(one: Obj) -> str:
    """Return the path that a webhook is reached under."""
    return urlsplit(str(one["clientConfig"]["url"])).path


def _is_under_refuse(request: Obj, _home: str) -> bool:
    return (dig(request, "object", "metadata", "annotations") or {}).get(POLICY_ANNOTATION) == POLICY_REFUSE


def _is_not_going(request: Obj, _home: str) -> bool:
    return dig(request, "object", "metadata", "deletionTimestamp") is None


def _asks_for_more(request: Obj, _home: str) -> bool:
    new, old = request["object"], request["oldObject"] or {}
    if request["subResource"] == SCALE:
        return _replicas(new, 0) > _replicas(old, 0)
    template = filter(None, TEMPLATES[request["resource"]["resource"]].split("."))
    place = (*template, "metadata", "annotations")
    entries, before = ((dig(side, *place) or {}).get(GPUS_ANNOTATION, "") for side in (new, old))
    more = request["operation"] == CREATE or entries != before or _replicas(new, 1) > _replicas(old, 1)
    return bool(entries) and (more or (not _is_control_plane(request) and _owners(new) != _owners(old)))


def _is_control_plane(request: Obj) -> bool:
    asker = request["userInfo"]
    return bool(asker["username"] == CONTROLLER_MANAGER) or CONTROL_PLANE_GROUP in (asker.get("groups") or ())


def _owners(obj: Obj) -> list[str]:
    return [one["uid"] for one in dig(obj, "metadata", "ownerReferences") or () if one.get("controller")]


def _replicas(obj: Obj, unset: int) -> int:
    found = dig(obj, "spec", "replicas")
    return unset if found is None else int(found)


def _is_no_claim_of_ours(request: Obj, home: str) -> bool:
    marked = TEMPLATE_LABEL in (dig(request, "object", "metadata", "labels") or {})
    return not (marked and f"{ACCOUNTS_GROUP}{home}" in request["userInfo"]["groups"])


CONDITIONS = {
    UNDER_REFUSE: _is_under_refuse,
    NOT_GOING: _is_not_going,
    ASKS_FOR_MORE: _asks_for_more,
    NOT_OURS: _is_no_claim_of_ours,
}


def hook_of(one: Obj, answer: Callable[[bytes], Awaitable[bytes]], home: str) -> Hook:
    """Return a webhook of a configuration object as the server asks it; `answer` takes and gives a review's bytes."""
    (rule,) = one["rules"]
    selected: Obj = dig(one, "objectSelector", "matchLabels") or {}
    conditions: list[Obj] = one.get("matchConditions", [])

    async def review(asked: Obj) -> Obj:
        reviewed: dict[str, Any] = decode(await answer(encode(asked)))
        return reviewed

    def concerns(request: Obj) -> bool:
        labels = dig(request, "object", "metadata", "labels") or {}
        selects = all(labels.get(name) == value for name, value in selected.items())
        return selects and all(CONDITIONS[condition["name"]](request, home) for condition in conditions)

    return Hook(
        name=one["name"],
        review=review,
        resources=tuple(_place(plural, group) for group in rule["apiGroups"] for plural in rule["resources"]),
        operations=tuple(rule["operations"]),
        # Of the two kinds, only mutating webhooks say when they are asked again.
        mutating="reinvocationPolicy" in one,
        fail_closed=one["failurePolicy"] == "Fail",
        reinvoke=one.get("reinvocationPolicy") == "IfNeeded",
        when=concerns,
    )


def _place(resource: str, group: str) -> str:
    """Name a resource as `deploy.world.admission` does."""
    plural, slash, sub = resource.partition("/")
    return f"{plural}.{group}{slash}{sub}" if group else resource

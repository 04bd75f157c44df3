"""Policies and the settings they take as parameter, installed beside the webhooks.

A settings ConfigMap that stands is left as it is, but for what a policy needs to know and nobody said: which user
we are, where KubeVirt runs.
"""

import asyncio
from typing import Any, Final

import msgspec
import structlog

from binder.kube import ApiError, Kube, PatchKind, find
from schemas import names
from schemas.admission import ACCOUNT_PREFIX, POLICY, POLICY_BINDING, SELF_REVIEW
from schemas.kinds import CONFIGMAP, KUBEVIRT, Resource
from webhooks.policies import policy_objects

LOOK_SECONDS = 60.0
_TRIES: Final = 5
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_NOT_ALLOWED: Final = 405

_log = structlog.get_logger(__name__)


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Settings(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _SelfStatus(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _User = _User()


class _Self(msgspec.Struct, frozen=True):
    status: _SelfStatus = _SelfStatus()


async def install_policies(kube: Kube, namespace: str) -> None:
    """Have settings, policies and bindings in place, as they are now. `namespace` is that of the settings.

    Raises `ApiError`; an API server that knows no such policies is told of in the log.
    """
    try:
        await ensure_settings(kube, namespace)
        await _warn_of_other_controllers(kube, namespace)
        for body in policy_objects(namespace):
            await put(kube, POLICY if body["kind"] == POLICY.kind else POLICY_BINDING, body)
    except ApiError as error:
        if error.code != _NOT_FOUND:
            raise
        _log.warning("policies not installed: they need Kubernetes 1.30", why=str(error))
        return
    _log.info("policies installed", namespace=namespace)


async def put(kube: Kube, resource: Resource, body: dict[str, Any]) -> None:
    """Create a cluster-wide object, or make it what it should be. Raises `ApiError`.

    Replicas that begin together write over one another: whoever comes second reads again.
    """
    name = body["metadata"]["name"]
    for tries_left in reversed(range(_TRIES)):
        try:
            try:
                await kube.create(resource, "", msgspec.json.encode(body))
            except ApiError as error:
                if error.code != _CONFLICT:
                    raise
                stored = msgspec.json.decode(await kube.get(resource, "", name), type=_Object)
                metadata = body["metadata"] | {"resourceVersion": stored.metadata.resource_version}
                await kube.replace(resource, "", name, msgspec.json.encode(body | {"metadata": metadata}))
        except ApiError as error:
            if error.code not in {_CONFLICT, _NOT_FOUND} or not tries_left:
                raise
        else:
            return


async def keep_settings(kube: Kube, namespace: str) -> None:
    """Look after the settings for ever: they may be deleted, and KubeVirt may come later than we (D12)."""
    complaint = ""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await ensure_settings(kube, namespace)
        except ApiError as error:
            if str(error) != complaint:
                complaint = str(error)
                _log.warning("the settings that policies need were not looked after; tried again", why=complaint)


async def ensure_settings(kube: Kube, namespace: str) -> None:
    """Have the settings say what policies need to know, where they don't say it themselves. Raises `ApiError`."""
    user = await _own_name(kube)
    known = {names.SETTING_CONTROLLERS: user, names.SETTING_KUBEVIRT: await _home_of_kubevirt(kube)}
    # Accounts of the namespace itself are ours where nothing is said.
    if user.startswith(f"{ACCOUNT_PREFIX}{namespace}:"):
        known[names.SETTING_CONTROLLERS] = ""
    said = await _settings(kube, namespace)
    lacking = {key: value for key, value in known.items() if value and key not in (said or {})}
    if said is None:
        metadata = {"name": names.SETTINGS_CONFIGMAP, "labels": {names.MANAGED_BY_LABEL: names.FIELD_MANAGER}}
        body = {"apiVersion": CONFIGMAP.api_version, "kind": CONFIGMAP.kind, "metadata": metadata, "data": lacking}
        try:
            await kube.create(CONFIGMAP, namespace, msgspec.json.encode(body))
        except ApiError as error:
            # Another replica was first.
            if error.code != _CONFLICT:
                raise
        return
    if lacking:
        patch = msgspec.json.encode({"data": lacking})
        await kube.patch(CONFIGMAP, namespace, names.SETTINGS_CONFIGMAP, patch, kind=PatchKind.MERGE)


async def _warn_of_other_controllers(kube: Kube, namespace: str) -> None:
    listed = (await _settings(kube, namespace) or {}).get(names.SETTING_CONTROLLERS)
    user = await _own_name(kube)
    if listed is not None and user and user not in [name.strip() for name in listed.split(",")]:
        _log.warning(
            "the settings name other users than ours as controllers: our writes will be refused",
            user=user,
            remedy=f"add it to {names.SETTING_CONTROLLERS} in ConfigMap {namespace}/{names.SETTINGS_CONFIGMAP}",
        )


async def _settings(kube: Kube, namespace: str) -> dict[str, str] | None:
    body = await find(kube, CONFIGMAP, namespace, names.SETTINGS_CONFIGMAP)
    return (msgspec.json.decode(body, type=_Settings).data or {}) if body is not None else None


async def _own_name(kube: Kube) -> str:
    """Ask the API server who we are; one that can't say it is left alone."""
    body = {"apiVersion": SELF_REVIEW.api_version, "kind": SELF_REVIEW.kind}
    try:
        answer = await kube.create(SELF_REVIEW, "", msgspec.json.encode(body))
    except ApiError as error:
        if error.code in {_NOT_FOUND, _NOT_ALLOWED}:
            return ""
        raise
    return msgspec.json.decode(answer, type=_Self).status.user_info.username


async def _home_of_kubevirt(kube: Kube) -> str:
    """Return the namespace of the KubeVirt resource, '' where there is none yet."""
    try:
        page = await kube.list_page(KUBEVIRT)
    except ApiError as error:
        if error.code == _NOT_FOUND:
            return ""
        raise
    homes = [msgspec.json.decode(item, type=_Object).metadata.namespace for item in page.items]
    return min(homes, default="")

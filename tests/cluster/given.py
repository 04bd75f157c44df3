"""A cluster that somebody else made for tests: its kubeconfig is given, service accounts become the users."""

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from kubernetes_asyncio import client, config

from tests.cluster import users
from tests.cluster.admin import Admin
from tests.cluster.users import User

VARIABLE = "GPUBINDER_TEST_KUBECONFIG"
_TOKEN_SECONDS = 12 * 3600
# Outside our own control plane nobody has a token of the group system:masters to hand out.
_ADMIN = User(users.ADMIN.key, "system:serviceaccount:gpubinder-tests:admin", (), role="cluster-admin")
_USERS = (_ADMIN, *(user for user in users.USERS if user is not users.ADMIN))


class Cluster(Protocol):
    """What a test may ask of any cluster; `tests.cluster.controlplane` lets it do more to one of our own."""

    admin: Admin

    def kubeconfig(self, user: User = users.ADMIN) -> Path:
        """The kubeconfig file of one of `tests.cluster.users.USERS`."""
        ...


class GivenCluster:
    """`with GivenCluster(kubeconfig) as cluster:` the same users as in our own control plane, made there.

    Webhooks on this machine's loopback can't be reached from it and its parts can't be killed; tests that
    need either ask for `control_plane`. What is made there (accounts, bindings, kinds) stays there.
    """

    def __init__(self, kubeconfig: Path) -> None:
        """Make the users. Any way of signing in that a kubeconfig can name will do; no loop may be running."""
        self._temporary = tempfile.TemporaryDirectory(prefix="gpubinder-given-")
        server, authority, tokens = asyncio.run(_make_users(kubeconfig))
        for user in _USERS:
            users.write_kubeconfig(
                self.kubeconfig(user), server=server, authority=authority, user=user.name, token=tokens[user.key]
            )
        tls = ssl.create_default_context(cadata=authority.decode() or None)
        self.admin = Admin(server, tls, tokens[_ADMIN.key])

    def kubeconfig(self, user: User = users.ADMIN) -> Path:
        """The kubeconfig file of one of `tests.cluster.users.USERS`."""
        return Path(self._temporary.name) / f"{user.key}.kubeconfig"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.cleanup()


async def _make_users(kubeconfig: Path) -> tuple[str, bytes, dict[str, str]]:
    """Make accounts and bindings; return (server, CA as PEM or nothing, token of each user's key)."""
    settings = client.Configuration()
    await config.load_kube_config(config_file=str(kubeconfig), client_configuration=settings)
    authority = Path(settings.ssl_ca_cert).read_bytes() if settings.ssl_ca_cert else b""
    async with client.ApiClient(settings) as connection:
        tokens = {user.key: await _make_user(connection, user) for user in _USERS}
    return settings.host or "", authority, tokens


async def _make_user(connection: client.ApiClient, user: User) -> str:
    """Make one service account with its rights, unless it is there; return a token for it."""
    core, rights = client.CoreV1Api(connection), client.RbacAuthorizationV1Api(connection)
    namespace, name = user.name.split(":")[2:]
    # The generated methods name their models as types and take plain objects as well.
    place: Any = {"metadata": {"name": namespace}}
    account: Any = {"metadata": {"name": name}}
    request: Any = {"spec": {"expirationSeconds": _TOKEN_SECONDS, "audiences": []}}
    await _unless_there(core.create_namespace(place))
    await _unless_there(core.create_namespaced_service_account(namespace, account))
    if user.role:
        binding: Any = users.binding(user, user.role)[1]
        await _unless_there(rights.create_cluster_role_binding(binding))
    issued = await core.create_namespaced_service_account_token(name, namespace, request)
    token: str = issued.status.token
    return token


async def _unless_there(creation: Awaitable[object]) -> None:
    try:
        await creation
    except client.ApiException as refused:
        if refused.status != HTTPStatus.CONFLICT:
            raise

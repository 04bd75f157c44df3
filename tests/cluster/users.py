"""Who speaks to the test cluster: four users, their tokens, their kubeconfigs and what they may do.

All but the administrator carry the names of service accounts, so that a cluster which knows no token
file can issue their tokens too.
"""

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path

import yaml

SERVICE_ACCOUNTS = "system:serviceaccounts"


@dataclass(frozen=True)
class User:
    """A user of the API server. `role`: the ClusterRole bound everywhere, or '' for none."""

    key: str
    name: str
    groups: tuple[str, ...]
    role: str = ""


ADMIN = User("admin", "admin", ("system:masters",))
# The name under which virt-controller creates VMIs and launcher pods; admission looks at it.
KUBEVIRT = User(
    "kubevirt",
    "system:serviceaccount:kubevirt:kubevirt-controller",
    (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:kubevirt"),
    role="cluster-admin",
)
GPUBINDER = User(
    "gpubinder",
    "system:serviceaccount:gpubinder:gpubinder",
    (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:gpubinder"),
    role="cluster-admin",
)
# May do nothing until a test binds a role to it.
TENANT = User("tenant", "system:serviceaccount:tenants:tenant", (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:tenants"))
USERS = (ADMIN, KUBEVIRT, GPUBINDER, TENANT)


def make_tokens(path: Path) -> dict[str, str]:
    """Write the static token file of the API server; return user key -> token."""
    tokens = {user.key: secrets.token_hex(16) for user in USERS}
    lines = [f'{tokens[user.key]},{user.name},{user.key},"{",".join(user.groups)}"\n' for user in USERS]
    path.write_text("".join(lines))
    path.chmod(0o600)
    return tokens


def write_kubeconfig(path: Path, *, server: str, authority: bytes, user: str, token: str) -> None:
    """Write a kubeconfig with one cluster and one user; the CA is inside, so that the file can be moved."""
    trust = {"certificate-authority-data": base64.b64encode(authority).decode()} if authority else {}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, **trust}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    }
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)


def binding(user: User, role: str, namespace: str = "") -> tuple[str, dict[str, object]]:
    """Return (collection path, object) that binds a ClusterRole to the user, in one namespace or everywhere."""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    place = f"namespaces/{namespace}/rolebindings" if namespace else "clusterrolebindings"
    metadata = {"name": f"test-{user.key}-{role}"} | ({"namespace": namespace} if namespace else {})
    return f"/apis/rbac.authorization.k8s.io/v1/{place}", {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user.name}],
    }

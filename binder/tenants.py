"""The tree of tenants, which stands in the names of namespaces alone (C29).

`tenant-root` is above every tenant; `tenant-a-b` is below `tenant-a`, whether a namespace of that name
exists or not; a tenant's own part of the name holds no dash. `tenant-ab` is not below `tenant-a`. Every
other namespace stands on its own: nothing is above it, and nothing below.
"""

from functools import lru_cache

from schemas.names import TENANT_PREFIX, TENANT_ROOT


def is_tenant(namespace: str) -> bool:
    """Say whether a namespace is a tenant's: `tenant-` and something after it."""
    return namespace.startswith(TENANT_PREFIX) and not namespace.endswith("-")


@lru_cache(maxsize=65_536)  # asked with every unit that is taken or freed, for the same few thousand namespaces
def line_of(namespace: str) -> tuple[str, ...]:
    """Return a namespace and all tenants above it, nearest first: `tenant-a-b`, `tenant-a`, `tenant-root`."""
    if not is_tenant(namespace) or namespace == TENANT_ROOT:
        return (namespace,)
    line = [namespace]
    name = namespace
    while (cut := name.rfind("-")) >= len(TENANT_PREFIX):
        name = name[:cut]
        if is_tenant(name):
            line.append(name)
    if line[-1] != TENANT_ROOT:
        line.append(TENANT_ROOT)
    return tuple(line)


def tenant_of_release(namespace: str, name: str) -> str:
    """Return the namespace that a Tenant's HelmRelease makes, '' where none may be made of these names.

    The release is called `tenant-NAME`, NAME without a dash, and stands in its parent's namespace; children of
    the root leave the root's name out, and the root's own release makes the root.
    """
    own = name.removeprefix(TENANT_PREFIX)
    if not is_tenant(name) or "-" in own or not is_tenant(namespace):
        return ""
    return name if namespace == TENANT_ROOT else f"{namespace}-{own}"


def release_of_tenant(tenant: str) -> str:
    """Return the key `namespace/name` of the HelmRelease that makes a tenant's namespace, '' where none can."""
    parent, _, own = tenant.rpartition("-")
    above, name = parent if is_tenant(parent) else TENANT_ROOT, f"{TENANT_PREFIX}{own}"
    return f"{above}/{name}" if tenant_of_release(above, name) == tenant else ""

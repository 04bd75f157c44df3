"""Gets the programs of the test control plane: given ones, or one binary built once and cached.

`python -m tests.cluster.build` does it ahead of the tests and prints where the programs are. The build
takes about six minutes on two cores, needs a Go module proxy and 3 GB of disk, and is then reused until one
of the three files in `controlplane/` changes.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.golang import GoBinary, NotBuilt, from_mod

SOURCES = Path(__file__).parent / "controlplane"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_PACKAGES = 2600  # about what `go build -v` names; for the progress line alone
_REMEDIES = (
    "remedies: set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (setup-envtest fetches one), "
    "or GPUBINDER_TEST_KUBECONFIG to the kubeconfig of a cluster made for tests"
)

ControlPlaneUnavailable = NotBuilt
"""No control plane can be had on this machine; the message names what is missing and the remedies."""


@dataclass(frozen=True)
class Programs:
    """How to start each component: a name of `COMPONENTS` -> the first words of its command line."""

    commands: dict[str, tuple[str, ...]]


def obtain() -> Programs:
    """Return the programs of `KUBEBUILDER_ASSETS`, and for what is not there those of the built binary.

    Raises ControlPlaneUnavailable. Progress goes to stderr.
    """
    commands: dict[str, tuple[str, ...]] = {}
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given:
        for name in COMPONENTS:
            program = Path(given) / name
            if os.access(program, os.X_OK):
                commands[name] = (str(program),)
        missing = {"etcd", "kube-apiserver"} - commands.keys()
        if missing:
            raise ControlPlaneUnavailable(
                f"KUBEBUILDER_ASSETS={given}: no {' and no '.join(sorted(missing))} there; correct it or unset it"
            )
    for name in COMPONENTS:
        if name not in commands:
            commands[name] = (str(built()), name)
    return Programs(commands)


def cache() -> Path:
    """Where the built binary is, or will be."""
    return _binary().cache()


def built() -> Path:
    """Return the cached binary, built first if need be; one process builds, the others wait for it."""
    return _binary().built()


def _binary() -> GoBinary:
    version = from_mod(SOURCES, r"^\s*k8s\.io/kubernetes v(\S+)")
    major, minor, _ = version.split(".", 2)
    stamp = "k8s.io/component-base/version"
    return GoBinary(
        name="controlplane",
        sources=SOURCES,
        files=("go.mod", "go.sum", "main.go"),
        package=".",
        ldflags=f"-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}",
        title="test control plane",
        about=f"Kubernetes {version} and etcd (about 6 minutes on two cores)",
        packages=_PACKAGES,
        remedies=_REMEDIES,
    )


if __name__ == "__main__":
    try:
        lines = [f"{component}: {' '.join(words)}\n" for component, words in obtain().commands.items()]
        sys.stdout.writelines(lines)
    except ControlPlaneUnavailable as unavailable:
        sys.exit(str(unavailable))

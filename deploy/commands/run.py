"""`gpubinder run`: serve a cluster, all roles in one process or one of them in each."""


def run() -> None:
    """Serve."""

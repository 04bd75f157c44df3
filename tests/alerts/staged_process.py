"""The stage in a process of its own, to be killed and to be read: `python -m tests.alerts.staged_process DIRECTORY`."""

import asyncio
import sys
from base64 import b64encode
from pathlib import Path

import msgspec

from deploy.local import LocalNats
from deploy.log_lines import Form, Level, configure
from schemas.kinds import GPU_CLASS, SECRET
from schemas.names import LICENCE_TOKEN_KEY
from tests.deploy.watched_stage import NAMESPACE, Stage, settled, stage
from tests.ports import keep_apart

PORT_FILE = "port"
TOKEN = "a-licence-token-of-the-hoster"
"""What the copied licence holds: a secret."""


async def serve(directory: Path) -> None:
    """Serve until killed; where to scrape stands in a file once VMs are settled and a licence is copied."""
    async with LocalNats(directory / "nats") as nats, stage(nats, directory) as here:
        await here.scraped(settled)
        await license_a_class(here)
        await here.scraped(lambda one: bool(one.all("gpubinder_decisions_total", kind="licence-copied")))
        partial = directory / f"{PORT_FILE}.partial"
        partial.write_text(str(here.port))
        partial.rename(directory / PORT_FILE)
        await asyncio.Event().wait()


async def license_a_class(here: Stage) -> None:
    """Let there be a class whose licence is copied to the tenants."""
    secret = {"metadata": {"name": "lic"}, "data": {LICENCE_TOKEN_KEY: b64encode(TOKEN.encode()).decode()}}
    head = {"apiVersion": SECRET.api_version, "kind": SECRET.kind}
    await here.cluster.api.create(SECRET, NAMESPACE, msgspec.json.encode(head | secret))
    spec = {"resourceName": "nvidia.com/NVIDIA_A16-4C", "mode": "VGPU", "license": {"secretName": "lic"}}
    body = {"apiVersion": GPU_CLASS.api_version, "kind": GPU_CLASS.kind, "metadata": {"name": "a16"}, "spec": spec}
    await here.cluster.api.create(GPU_CLASS, "", msgspec.json.encode(body))


if __name__ == "__main__":
    keep_apart()
    configure(Form.JSON, Level.DEBUG)
    asyncio.run(serve(Path(sys.argv[1])))

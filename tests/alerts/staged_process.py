"""The stage in a process of its own, to be killed: `python -m tests.alerts.staged_process DIRECTORY`."""

import asyncio
import sys
from pathlib import Path

from deploy.local import LocalNats
from tests.deploy.watched_stage import settled, stage

PORT_FILE = "port"


async def serve(directory: Path) -> None:
    """Serve until killed; where to scrape stands in a file once the VMs are settled."""
    async with LocalNats(directory / "nats") as nats, stage(nats, directory) as here:
        await here.scraped(settled)
        partial = directory / f"{PORT_FILE}.partial"
        partial.write_text(str(here.port))
        partial.rename(directory / PORT_FILE)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

"""`python -m tests.bench`: measures the program beside its references, on real parts, and prints a table.

Every reference is measured in the same run, since figures of two machines, or of two hours, say little.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests.bench import admission, budgets, burst, door, failover, heart, ledger, steady
from tests.bench.figures import Figure, table, write
from tests.bench.ground import Ground, Say, ground

Benchmark = Callable[[Ground, Say], Awaitable[list[Figure]]]
BENCHMARKS: dict[str, Benchmark] = {
    "burst": burst.measure,
    "burst-emulated": burst.measure_emulated,
    "steady": steady.measure,
    "heart": heart.measure,
    "ledger": ledger.measure,
    "budgets": budgets.measure,
    "admission": admission.measure,
    "door": door.measure,
    "door-refuse": door.measure_refuse,
    "failover": failover.measure,
}


async def run(names: Sequence[str], console: Console) -> list[Figure]:
    """Run the benchmarks one after the other and return their figures."""
    figures: list[Figure] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting the control plane", total=len(names))

        def say(what: str) -> None:
            progress.console.print(f"[dim]{progress.tasks[0].description}:[/] {what}")

        async with ground() as here:
            for name in names:
                progress.update(task, description=name)
                figures += await BENCHMARKS[name](here, say)
                progress.advance(task)
    return figures


def main() -> int:
    """Measure, print the table, write the file that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure gpubinder on real parts.")
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="run this one; may be repeated")
    parser.add_argument("--output", type=Path, help="write the figures as JSON to this file")
    chosen = parser.parse_args()
    console = Console()
    figures = asyncio.run(run(chosen.only or list(BENCHMARKS), console))
    console.print(table(figures))
    if chosen.output:
        write(figures, chosen.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())

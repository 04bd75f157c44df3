"""`python -m tests.simulation --seed N --steps M`: live one world, or many, and tell of the first that breaks a law."""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.simulation.acts.act import Step
from tests.simulation.cluster import Setting
from tests.simulation.life import STEPS, Lived, lived
from tests.simulation.script import script_of, setting_of
from tests.simulation.shrink import Shrinker
from tests.simulation.story import Teller, as_test, spelled


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run from the command line; 1 where a law was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the world, or the first of many")
    parser.add_argument("--steps", type=int, default=STEPS, help="how many acts (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="how many worlds (default: one)")
    parser.add_argument("--trace", action="store_true", help="tell every input and every decision")
    parser.add_argument("--whole", action="store_true", help="don't shorten the script of a world that breaks a law")
    options = parser.parse_args()
    if options.seeds == 1:
        return _tell(options.seed, options.steps, trace=options.trace, whole=options.whole)
    began = time.monotonic()
    for count, seed in enumerate(range(options.seed, options.seed + options.seeds), 1):
        found = lived(seed, setting_of(seed), script_of(seed, options.steps))
        if found.broken is not None:
            return _tell(seed, options.steps, trace=options.trace, whole=options.whole)
        if count % 20 == 0:
            say(f"{count} worlds, {count / (time.monotonic() - began):.1f} a second")
    return 0


def _tell(seed: int, steps: int, *, trace: bool, whole: bool) -> int:
    setting = setting_of(seed)
    script: Sequence[Step] = script_of(seed, steps)
    say(f"seed {seed}: {spelled(setting)}")
    found = _lived(seed, setting, script, trace=trace)
    if found.broken is None:
        say(f"all laws held: {found.at_s:.0f} s, {found.inputs} inputs, {found.frames} frames, {found.digest[:16]}")
        return 0
    if not whole:
        script = _shortened(seed, setting, script, found)
        _lived(seed, setting, script, trace=trace)
    say("")
    for line in as_test(seed, setting, script, found.broken.law):
        say(line)
    return 1


def _lived(seed: int, setting: Setting, steps: Sequence[Step], *, trace: bool) -> Lived:
    teller = Teller(say, trace=trace)
    found = lived(seed, setting, steps, teller)
    if found.broken is not None:
        say(f"{found.at_s:8.2f}  BROKEN {found.broken}")
    return found


def _shortened(seed: int, setting: Setting, steps: Sequence[Step], found: Lived) -> Sequence[Step]:
    law = found.broken.law if found.broken is not None else ""

    def fails(candidate: Sequence[Step]) -> bool:
        again = lived(seed, setting, candidate).broken
        return again is not None and again.law == law

    shrinker = Shrinker(fails)
    shortest = shrinker.shrink(steps)
    say(f"shortened from {len(steps)} acts to {len(shortest)} in {shrinker.tries} worlds:")
    return shortest


if __name__ == "__main__":
    sys.exit(main())

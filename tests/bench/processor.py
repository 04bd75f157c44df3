"""Processor time, as the kernel counts it: of one process, and of the whole machine."""

import os
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)
_COUNTED = slice(1, 9)
"""From user to steal; guests are counted among users already."""


def used_s(pid: int) -> float:
    """Return the seconds that a process has used, for itself and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def busy_s() -> float:
    """Return the seconds that all processors together were at work since the machine began."""
    spent = [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[_COUNTED]]
    return (sum(spent) - sum(spent[_IDLE])) / _TICKS_A_SECOND

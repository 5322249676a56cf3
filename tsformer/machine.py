"""The memory of this machine: what is free, what this process holds, and how bytes are written."""

from __future__ import annotations

import os
from pathlib import Path

import torch


def available(device: torch.device) -> int | None:
    """Bytes that a process may still take; None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    limits = [_host_memory(), group_memory()]
    return min((limit for limit in limits if limit is not None), default=None)


def resident() -> int:
    """Bytes of memory that this process holds now; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def group_memory(v2: Path = Path("/sys/fs/cgroup"), v1: Path = Path("/sys/fs/cgroup/memory")) -> int | None:
    """What a container's limit leaves, None without a limit; pages of files that the kernel can drop are free."""
    for root, limit, used, cache in (
        (v2, "memory.max", "memory.current", "inactive_file"),
        (v1, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, now = (int((root / name).read_text()) for name in (limit, used))
            stat = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
            return most - now + int(stat.get(cache, 0))
        except (OSError, ValueError):
            continue  # no such file, or "max": no limit
    return None


def in_units(count: int) -> str:
    """Bytes for people: "1.5 GiB"."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024 or unit == "PiB":
            break
        value /= 1024
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def _host_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return 1024 * (kib["MemAvailable"] + kib["SwapFree"])
    except (OSError, ValueError, KeyError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None

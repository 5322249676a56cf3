"""A fit up to its first step: everything is read, built, tried and measured, and nothing is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from tsformer import memory
from tsformer.data.panel import Panel
from tsformer.fitting import build_module, device_of, try_out
from tsformer.memory import Memory
from tsformer.nn.outputs import output_of
from tsformer.preparation import Prepared, complete, prepare
from tsformer.settings import Settings


@dataclass(frozen=True)
class DryRun:
    """What a fit would do.

    Attributes:
        settings: with a complete window.
        parameters: numbers that the model learns.
        steps: optimiser steps at most; 0 for a model that is fitted without gradients.
        batch_size: windows in one step.
        device: where it would run.
        memory: bytes by purpose.
        process: bytes that Python and its libraries hold, besides the data.
        available: bytes that are free on the device; None where it does not say.
    """

    settings: Settings
    prepared: Prepared
    parameters: int
    steps: int
    batch_size: int
    device: torch.device
    memory: Memory
    process: int
    available: int | None

    def require_memory(self) -> None:
        """Raises ResourceError when the device has less than the fit needs."""
        memory.refuse(self.memory, self.parameters, self.settings, self.prepared.problem, self.device)

    def to_json(self) -> dict[str, Any]:
        """The object that `fit --dry-run --json` prints."""
        settings, panel, prepared = self.settings, self.prepared.panel, self.prepared
        parts = {"train": prepared.train, "validation": prepared.validation, "test": prepared.test}
        return {
            "schema": 1,
            "task": prepared.problem.task.value,
            "model": settings.model.name,
            "data": settings.data.name if settings.data else None,
            "rows": len(panel.values),
            "series": len(panel.ids),
            "targets": list(panel.schema.targets),
            "covariates": len(panel.schema.columns) - len(panel.schema.targets),
            "frequency": panel.schema.frequency,
            **settings.window.model_dump(),
            "windows": {name: len(windows) for name, windows in parts.items()},
            "parameters": self.parameters,
            "steps": self.steps,
            "batch_size": self.batch_size,
            "device": str(self.device),
            "memory": {
                **asdict(self.memory),
                "process": self.process,
                "peak": self.process + self.memory.peak,
                "available": self.available,
            },
        }


def dry_run(settings: Settings, panel: Panel) -> DryRun:
    """Prepare a fit, build its model, try it on a few windows, and say what it would take.

    The caller's random state is left as it was.

    Raises:
        DataError, PluginError, UsageError: what a fit would say before its first step.
        ResourceError: the device is not there, or its memory cannot hold the model.
    """
    settings = complete(settings, panel)
    device = device_of(settings.train.device)
    prepared = prepare(settings, panel)
    output = output_of(prepared.problem, settings.train.loss, settings.train.huber_delta)
    memory.require(settings, prepared, device)
    process = max(0, memory.resident() - memory.data_bytes(prepared)) + memory.LIBRARIES
    train, windows = settings.train, len(prepared.train)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        module = build_module(settings.model, prepared.problem).to(device)
        try_out(settings.model, module, prepared.train, prepared.problem)
        trained = settings.model.plugin.fit is None and any(p.requires_grad for p in module.parameters())
        kept = memory.activations(settings, prepared, module, output) if trained else 0
    return DryRun(
        settings=settings,
        prepared=prepared,
        parameters=memory.parameters_of(module),
        steps=train.steps_for(windows) if trained else 0,
        batch_size=train.batch_for(windows),
        device=device,
        memory=memory.estimate(settings, prepared, module, kept),
        process=process,
        available=memory.available(device),
    )

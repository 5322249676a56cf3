"""A fit up to its first step: everything is read, built, tried and measured, and nothing is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from tsformer import machine, memory
from tsformer.building import torch_seeded
from tsformer.data.panel import Panel
from tsformer.data.sequences import Sequences
from tsformer.data.split import Split
from tsformer.fitting import make_ready
from tsformer.joint import steps_of
from tsformer.memory import Memory
from tsformer.parameters import parameters_of
from tsformer.preparation import Prepared
from tsformer.sequence_preparation import PreparedSequences
from tsformer.settings import Settings


@dataclass(frozen=True)
class DryRun:
    """What a fit would do.

    Attributes:
        settings: with a complete window.
        parameters: numbers that the model learns.
        steps: optimiser steps at most; 0 for a model that is fitted without gradients.
        batch_size: examples in one step.
        device: where it would run.
        memory: bytes by purpose.
        process: bytes that Python and its libraries hold, besides the data.
        available: bytes that are free on the device; None where it does not say.
        notes: what the user should hear of, one line each.
    """

    settings: Settings
    prepared: Prepared | PreparedSequences
    parameters: int
    steps: int
    batch_size: int
    device: torch.device
    memory: Memory
    process: int
    available: int | None
    notes: tuple[str, ...] = ()

    def require_memory(self) -> None:
        """Raises ResourceError when the device has less than the fit needs."""
        memory.refuse(self.memory, self.parameters, self.settings, self.prepared.parts.problem, self.device)

    def to_json(self) -> dict[str, Any]:
        """The object that `fit --dry-run --json` prints."""
        settings, parts = self.settings, self.prepared.parts
        counts = {"train": len(parts.train), "validation": len(parts.validation), "test": len(parts.test)}
        return {
            "schema": 1,
            "task": parts.problem.task.value,
            "model": settings.model.name,
            "data": settings.data.name if settings.data else None,
            **self._data(),
            "windows" if isinstance(self.prepared, Prepared) else "examples": counts,
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

    def _data(self) -> dict[str, Any]:
        if isinstance(self.prepared, PreparedSequences):
            problem = self.prepared.problem
            sizes = ("channels", "vocabulary", "classes", "lookback")
            return {name: getattr(problem, name) for name in sizes}
        panel, problem = self.prepared.panel, self.prepared.problem
        static = problem.static_covariates + len(problem.static_cardinalities)
        return {
            "rows": len(panel.values),
            "series": len(panel.ids),
            "targets": list(panel.schema.targets),
            "covariates": problem.past_covariates + problem.future_covariates + static,
            "frequency": panel.schema.frequency,
            **self.settings.window.model_dump(),
        }


def dry_run(settings: Settings, data: Panel | Sequences, split: Split | None = None) -> DryRun:
    """Prepare a fit, build its model, try it on a few windows, and say what it would take.

    The caller's random state is left as it was.

    Args:
        split: as in `fitting.fit`.

    Raises:
        DataError, PluginError, UsageError: what a fit would say before its first step.
        ResourceError: the device is not there, or its memory cannot hold the model.
    """
    process = max(0, machine.resident() - memory.held_by(data)) + memory.LIBRARIES
    ready = make_ready(settings, data, split)
    settings, module, prepared = ready.fitted.settings, ready.fitted.module, ready.prepared
    train, examples = settings.train, len(prepared.parts.train)
    fits = ready.members or (ready,)  # one after another
    with torch_seeded(ready.draws):
        kept = max(
            memory.activations(each.fitted.settings, each.prepared.parts, each.fitted.module) if steps_of(each) else 0
            for each in fits
        )
    return DryRun(
        settings=settings,
        prepared=prepared,
        parameters=parameters_of(module),
        steps=sum(map(steps_of, fits)),
        batch_size=train.batch_for(examples),
        device=ready.device,
        memory=memory.estimate(settings, prepared, module, kept),
        process=process,
        available=machine.available(ready.device),
        notes=ready.notes,
    )

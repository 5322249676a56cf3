"""How much memory a fit needs, said before it is taken: counted on the meta device and measured on a few windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tsformer import machine
from tsformer.building import same_random_state
from tsformer.data.examples import Examples
from tsformer.data.panel import Panel
from tsformer.data.sequences import Sequences
from tsformer.data.wall import as_numbers
from tsformer.data.windows import Batch
from tsformer.errors import ResourceError
from tsformer.machine import in_units
from tsformer.parameters import by_gradients, first_lazy, parameters_of
from tsformer.parts import Parts
from tsformer.plugin import Problem, Task
from tsformer.preparation import Prepared
from tsformer.sequence_preparation import PreparedSequences
from tsformer.settings import Chosen, Settings
from tsformer.training.loop import PREDICTED_AT_ONCE

SCORED_COPIES = 6
"""Float64 arrays of the size of all predictions of the test part that scoring holds at once (measured)."""
STEP_OVERHEAD = 1.7
"""Peak of a training step over what autograd keeps: temporaries of the way back, gaps in the heap (measured)."""
LIVE_TENSORS = 3
"""Tensors of the largest size that live at once where no gradients are kept: input, output, one between (measured)."""
LIBRARIES = 64 * 2**20
"""Bytes that libraries take once training, scoring and drawing begin (measured)."""


@dataclass(frozen=True)
class Memory:
    """Bytes of a fit. Training comes first and scoring after it, so that a peak is not the sum of all.

    Attributes:
        data: the panel, its transformed rows and the windows' index.
        weights: parameters and buffers.
        gradients: of what is trained.
        optimiser: the two averages of AdamW.
        kept: copies of the weights: the best so far, the one that replaces it, and the moving average if there is one.
        activations: of a training step and of an evaluation.
        scoring: predictions of the whole test part, with truth, naive answers and errors.
    """

    data: int
    weights: int = 0
    gradients: int = 0
    optimiser: int = 0
    kept: int = 0
    activations: int = 0
    scoring: int = 0

    @property
    def peak(self) -> int:
        """Of the whole fit, without Python and its libraries."""
        training = self.optimiser + self.kept + self.activations
        return self.data + self.weights + self.gradients + max(training, self.scoring)


def size_of_model(model: Chosen, problem: Problem) -> nn.Module | None:
    """The model without its numbers, on the meta device; None where its build needs real ones."""
    try:
        with same_random_state(), torch.device("meta"), model.at_fault("build"):
            module = model.plugin.build(model.config, problem)
    except Exception:
        return None  # a real build will say what is wrong
    return module if isinstance(module, nn.Module) and first_lazy(module) is None else None


def estimate(
    settings: Settings, prepared: Prepared | PreparedSequences, module: nn.Module, activations: int = 0
) -> Memory:
    """What a fit of this module takes; the module may be on the meta device."""
    weights = _bytes([*module.parameters(), *module.buffers()])
    trained = 0
    if by_gradients(settings.model.plugin, module):
        trained = _bytes(p for p in module.parameters() if p.requires_grad)
    copies = (2 + (settings.train.ema > 0)) if trained else 1
    return Memory(
        data=held_by(prepared),
        weights=weights,
        gradients=trained,
        optimiser=2 * trained,
        kept=copies * weights,
        activations=activations,
        scoring=SCORED_COPIES * 8 * _predicted(prepared.parts),
    )


def _predicted(parts: Parts) -> int:
    """Numbers of predictions that scoring holds at once."""
    problem, examples = parts.problem, len(parts.test)
    if problem.task is Task.FORECAST:
        return examples * problem.horizon * problem.targets
    if problem.task is Task.CLASSIFY:
        return examples * problem.classes
    steps, numbers = max(problem.horizon, problem.lookback), max(problem.channels, problem.vocabulary)
    return min(examples, PREDICTED_AT_ONCE) * steps * numbers


def activations(settings: Settings, parts: Parts, module: nn.Module) -> int:
    """Bytes of activations at the peak, measured on two and on four examples, long ones, and scaled to a batch.

    What autograd keeps for the gradients is counted once, whatever views there are of it; weights are not counted.
    """
    train = settings.train
    step, most = train.batch_for(len(parts.train)), min(PREDICTED_AT_ONCE, len(parts.test))
    module.train()
    peaks = [0]
    for truth in {train.truth_start, (train.truth_start + train.truth_end) / 2, train.truth_end}:
        with settings.model.at_fault(f"a training step with truth={truth}"):
            two, four = (_kept(parts, module, examples, truth) for examples in (2, 4))
        evaluation = LIVE_TENSORS * _scaled(max(two, default=0), max(four, default=0), most)
        # the sum, since evaluation finds the heap in pieces that training left
        peaks.append(int(STEP_OVERHEAD * _scaled(sum(two), sum(four), step)) + evaluation)
    module.eval()
    return max(peaks)


def _kept(parts: Parts, module: nn.Module, examples: int, truth: float) -> list[int]:
    """Sizes of what one step forward keeps for its gradients; the step back is taken, too."""
    own = {t.untyped_storage().data_ptr() for t in (*module.parameters(), *module.buffers())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    batch = _long(parts.train, examples).to(next(module.parameters()).device)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = parts.objective.loss(module(batch, truth=truth), batch)
    loss.backward()  # type: ignore[no-untyped-call]
    module.zero_grad(set_to_none=True)
    return list(kept.values())


def _long(examples: Examples, count: int) -> Batch:
    """Some examples, the longest where they are of unequal length."""
    lengths = getattr(examples, "lengths", None)
    order = np.arange(len(examples)) if lengths is None else np.argsort(-lengths, kind="stable")
    return examples.batch(torch.from_numpy(np.resize(order, count)))


def _scaled(two: int, four: int, windows: int) -> int:
    return two + (windows - 2) * (four - two) // 2


def require(settings: Settings, prepared: Prepared | PreparedSequences, device: torch.device) -> None:
    """Refuse a fit whose weights or forecasts cannot be held, before anything of that size is made.

    Raises:
        ResourceError: says what is needed, what there is, and what to lower.
    """
    module = size_of_model(settings.model, prepared.problem)
    if module is not None:
        refuse(estimate(settings, prepared, module), parameters_of(module), settings, prepared.problem, device)


def refuse(needed: Memory, parameters: int, settings: Settings, problem: Problem, device: torch.device) -> None:
    """Raises ResourceError when a fit needs more than there is left; its data are there already."""
    needed = replace(needed, data=0)
    places = [(needed.peak, device)]
    if device.type != "cpu":
        places = [(replace(needed, scoring=0).peak, device), (needed.scoring, torch.device("cpu"))]
    for count, place in places:
        free = machine.available(place)
        if free is not None and count > free:
            raise ResourceError(
                f"the fit needs about {in_units(count)} of memory on {place} beside the data, and {in_units(free)} are "
                f"free; {settings.model} has {parameters:,} parameters here: {_remedy(needed, settings, problem)}"
            )


def _remedy(needed: Memory, settings: Settings, problem: Problem) -> str:
    """What to lower: numbers of the model that were raised above their defaults, and what else costs most."""
    config = settings.model.config
    raised = []
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if type(value) is type(field.default) is int and value > field.default:
            raised.append(f"--model.{name.replace('_', '-')} ({value})")
    if needed.activations > needed.weights:
        raised.insert(0, "--train.batch-size")
    if problem.vocabulary:
        raised.append(f"--tokens.max-size (there are {problem.vocabulary:,} tokens)")
    horizon = f"--window.horizon ({problem.horizon}) or " if problem.task is Task.FORECAST else ""
    window = f"{horizon}--window.lookback ({problem.lookback})"
    return f"lower {', '.join([*raised, window])}"


def held_by(thing: Panel | Prepared | Sequences | PreparedSequences) -> int:
    """Bytes of the rows, their times, and what was made of them, each array once."""
    found: dict[int, int] = {}
    for array in _arrays(thing):
        address = array.data_ptr() if isinstance(array, Tensor) else array.__array_interface__["data"][0]
        found[address] = max(found.get(address, 0), array.nbytes)
    return sum(found.values())


def _arrays(thing: object) -> Iterator[np.ndarray | Tensor]:
    """All arrays within a data class, as deep as they are."""
    if isinstance(thing, np.ndarray | Tensor):
        yield thing
    elif isinstance(thing, pd.Index):
        yield as_numbers(thing)
    elif isinstance(thing, tuple | list):
        for item in thing:
            yield from _arrays(item)
    elif is_dataclass(thing) and not isinstance(thing, type):
        for part in fields(thing):
            yield from _arrays(getattr(thing, part.name))


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)

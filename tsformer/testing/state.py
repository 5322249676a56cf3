"""Checks of what a model remembers and leaves alone, whatever its task."""

from __future__ import annotations

import torch
from torch import nn

from tsformer import weights
from tsformer.data.windows import Batch
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Task
from tsformer.testing.cases import Case, cases, rows, tensors, without_answer
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import generators, seeded
from tsformer.testing.problem import close, example_for, gradients


def check_batch_invariance(plugin: ModelPlugin, task: Task) -> None:
    """The prediction of an example does not depend on the examples beside it."""
    for case in cases(plugin, task):
        module = case.fitted(plugin).eval()
        for truth in {0.0, case.objective.truth}:
            batch = case.batch if truth else without_answer(case.batch)
            with torch.no_grad():
                together = module(rows(batch, slice(0, 4)), truth=truth)
                for row in range(4):
                    alone = module(rows(batch, slice(row, row + 1)), truth=truth)
                    if not close(alone, together[row : row + 1]):
                        raise CheckFailedError(
                            f"an example alone gets another prediction than in a batch{case.about}; statistics must "
                            "not run over the batch"
                        )


def check_save_and_load(plugin: ModelPlugin, task: Task) -> str | None:
    """The state dict alone brings predictions back, bit by bit, in a module built anew; after a training step, too."""
    if not plugin.persistent:
        return "persistent is False"
    for case in cases(plugin, task):
        module, batch = case.fitted(plugin).eval(), without_answer(case.rows(3))
        _save_and_load(plugin, case, module, batch)
        if by_gradients(plugin, module):
            module = case.build(plugin)
            gradients(module.train(), case.rows(3), case.truths[len(case.truths) // 2], case.objective)
            torch.optim.SGD(module.parameters(), lr=1e-3).step()
            _save_and_load(plugin, case, module.eval(), batch, " after a training step")
    return None


def _save_and_load(plugin: ModelPlugin, case: Case, module: nn.Module, batch: Batch, when: str = "") -> None:
    with torch.no_grad():
        prediction = module(batch)
    again = case.build(plugin, seed=1).eval()
    try:
        weights.load(again, weights.save(module))
    except (RuntimeError, ValueError) as error:
        raise CheckFailedError(
            f"a module built anew does not take the state dict{when} ({' '.join(str(error).split())}); "
            f"build must make every parameter and buffer in the shape that it has after training{case.about}"
        ) from error
    with torch.no_grad():
        if not torch.equal(again(batch), prediction):
            raise CheckFailedError(
                f"the state dict{when} does not bring the prediction back{case.about}; keep what is learned or drawn "
                "in buffers"
            )


def check_repeats_itself(plugin: ModelPlugin, task: Task) -> None:
    """The same seed builds the same module, which predicts the same each time and leaves the batch as it was."""
    for case in cases(plugin, task):
        module, again, batch = case.build(plugin), case.build(plugin), case.rows(3)
        state, other = module.state_dict(), again.state_dict()
        if state.keys() != other.keys() or not all(torch.equal(state[name], other[name]) for name in state):
            raise CheckFailedError(f"built twice with the same seed of torch, the module has other weights{case.about}")
        module.eval(), again.eval()
        before = {name: tensor.clone() for name, tensor in tensors(batch).items()}
        with torch.no_grad():
            module(batch)
            module(rows(batch, slice(0, 1)), truth=1.0)
            if not torch.equal(module(batch), again(batch)):
                raise CheckFailedError(
                    f"what was predicted before changes a prediction{case.about}; in eval() a module keeps no memory"
                )
        for name, tensor in before.items():
            if not torch.equal(getattr(batch, name), tensor):
                raise CheckFailedError(f"forward changes batch.{name} in place{case.about}; work on a copy")


def check_leaves_rng_alone(plugin: ModelPlugin, task: Task) -> None:
    """Building, fitting and predicting leave the caller's random generators as they were; prediction draws nothing.

    Building and a `fit` hook may draw from torch's generator, which the caller has seeded, and so may a forward in
    training; none may seed it.
    """
    for case in cases(plugin, task):
        _leaves_rng_alone(plugin, case)


def _leaves_rng_alone(plugin: ModelPlugin, case: Case) -> None:
    seed, batch = 20201, case.rows(2)  # a seed that nobody takes by chance
    with seeded(seed):
        before = generators()

        def no_seed_in(doing: str) -> None:
            if torch.initial_seed() != seed:
                raise CheckFailedError(
                    f"{doing} seeds torch's global generator; leave that to the caller, who has a --seed"
                )
            torch.manual_seed(seed)

        module = plugin.build(example_for(plugin, case.problem.task), case.problem)
        no_seed_in("building")
        if plugin.fit is not None:
            plugin.fit(module, case.train, case.validation)
            no_seed_in("fit")
        with torch.no_grad():
            module.eval()(without_answer(batch))
        if torch.random.get_rng_state().tolist() != before["torch's"]:
            raise CheckFailedError("a prediction draws from torch's global generator; in eval() nothing may be random")
        if by_gradients(plugin, module):
            module.train()(batch, truth=case.truths[len(case.truths) // 2])
            no_seed_in("a forward in train()")
        if {**generators(), "torch's": None} != {**before, "torch's": None}:
            raise CheckFailedError(
                "building or predicting changes a global random generator; do not seed or draw from it"
            )

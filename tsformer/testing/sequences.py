"""Checks of a model that reads sequences: shapes, padding, and what it may not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.building import promised
from tsformer.data.windows import Batch
from tsformer.errors import in_words
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Task
from tsformer.testing.cases import Case, cases, masked, tensors, without_answer
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.problem import close, drawn, given, gradients
from tsformer.testing.sequence_cases import SPARE

MORE = SPARE
"""Steps and tokens by which batches are padded further than their longest example."""


def check_shapes(plugin: ModelPlugin, task: Task) -> None:
    """forward returns finite numbers of the shape that the task wants, with and without the answer in the batch."""
    for case in cases(plugin, task):
        module = case.fitted(plugin).eval()
        for size in (1, 3):
            batch = case.rows(size)
            for truth, given_batch in ((0.0, without_answer(batch)), (1.0, batch)):
                call = f"forward(truth={truth:g}){case.about}"
                prediction = _free(module, batch) if truth == 0.0 else _forward(module, batch, truth)
                wanted, axes = promised(case.problem, given_batch, truth)
                shape = tuple(prediction.shape) if isinstance(prediction, Tensor) else type(prediction).__name__
                fits = isinstance(shape, tuple) and len(shape) == len(wanted)
                if not fits or any(want not in (None, got) for want, got in zip(wanted, shape, strict=True)):
                    raise CheckFailedError(f"{call} returns {shape}, not {wanted} [{axes}]")
                if not bool(torch.isfinite(prediction).all()):
                    raise CheckFailedError(f"{call} returns values that are not finite")


def _forward(module: nn.Module, batch: Batch, truth: float) -> Tensor:
    with torch.no_grad():
        prediction: Tensor = module(batch, truth=truth)
    return prediction


def _free(module: nn.Module, batch: Batch) -> Tensor:
    """The forward of a prediction."""
    try:
        return _forward(module, without_answer(batch), 0.0)
    except Exception as error:
        try:
            _forward(module, batch, 0.0)
        except Exception:
            raise error from None
        raise CheckFailedError(
            f"forward(truth=0) fails without label and target_tokens, as it is when predicting: {in_words(error)}; "
            "read target_tokens only where truth > 0, and label never"
        ) from error


def check_padding(plugin: ModelPlugin, task: Task) -> None:
    """Padding changes nothing: neither more of it, nor what stands there, NaN included, nor the gradients."""
    for case in cases(plugin, task):
        module, batch = case.fitted(plugin).eval(), case.batch
        before = _real(_forward(module, batch, 1.0), batch, case)
        more = _padded(batch)
        if not close(_real(_forward(module, more, 1.0), more, case), before):
            raise CheckFailedError(
                f"{MORE} more steps or tokens of padding change the prediction{case.about}; series are padded on the "
                "left, tokens on the right, up to the longest of a batch: go by the mask, not by places"
            )
        if task is Task.SEQUENCE:
            _check_free(module, batch, more)
        for what, dirty in _dirty(more):
            if not close(_real(_forward(module, dirty, 1.0), more, case), before):
                raise CheckFailedError(
                    f"{what} behind the mask change the prediction{case.about}; zero masked inputs, and give the mask "
                    "to attention, convolutions and pooling"
                )
            if not by_gradients(plugin, module):
                continue
            clean, spoiled = (gradients(module.train(), some, 1.0, case.objective) for some in (more, dirty))
            module.eval()
            for name, gradient in clean.items():
                other = spoiled[name]
                if gradient is not None and (other is None or not close(gradient, other)):
                    raise CheckFailedError(
                        f"{what} behind the mask change the gradient of parameter '{name}'{case.about}; zero masked "
                        "inputs before computing with them, for torch.where at the end hides a NaN from the "
                        "prediction, not from the gradient"
                    )


def _check_free(module: nn.Module, batch: Batch, more: Batch) -> None:
    """What is answered without the truth depends on padding as little as what is answered beside it."""
    before = _free(module, batch)
    for what, other in (("more padding", more), *_dirty(more)):
        found = _free(module, other)
        if found.shape != before.shape or not close(found, before):
            raise CheckFailedError(
                f"{what} of what is read changes the answer at truth=0; go by the mask in decoding, too, and let its "
                "length depend on problem.horizon alone"
            )


def _real(prediction: Tensor, batch: Batch, case: Case) -> Tensor:
    """What is predicted of real steps or tokens, one after another; all of it for classes."""
    if case.problem.task is Task.CLASSIFY:
        return prediction
    if case.problem.task is Task.SEQUENCE:
        mask = given(batch.target_token_mask)
    else:
        mask = given(batch.token_mask) if batch.past_mask is None else batch.past_mask.any(-1)
    if prediction.shape[:2] != mask.shape:
        raise CheckFailedError(
            f"forward returns {tuple(prediction.shape)} for a batch of {tuple(mask.shape)} steps{case.about}; its "
            "length is that of the batch, padding included"
        )
    return prediction[mask]


def _padded(batch: Batch) -> Batch:
    """Padded further, in a batch's own manner: steps of numbers on the left, words on the right."""
    words = {"tokens", "token_mask", "target_tokens", "target_token_mask"}
    steps = {"past", "past_mask", "hidden"}
    if batch.past is None:
        words, steps = words | {"hidden"}, set()
    elif batch.tokens is not None:
        steps |= {"tokens", "token_mask"}
    found = tensors(batch)
    for name, tensor in found.items():
        if name in steps:  # [batch, time] or [batch, time, features]
            found[name] = F.pad(tensor, (0, 0) * (tensor.ndim - 2) + (MORE, 0))
        if name in words:
            found[name] = F.pad(found[name], (0, MORE))
    return Batch(**found)


def _dirty(batch: Batch) -> Iterator[tuple[str, Batch]]:
    """What may stand behind the masks, in words, and the batch with it."""
    if batch.past is not None:
        for number in (5.0, 1e6, float("nan")):
            yield f"numbers {number:g}", replace(batch, past=torch.where(batch.past_mask, batch.past, number))
    if batch.tokens is not None:
        yield "other tokens", replace(batch, tokens=torch.where(given(batch.token_mask), batch.tokens, 5))
    if batch.target_tokens is not None:
        tokens = torch.where(given(batch.target_token_mask), batch.target_tokens, 5)
        yield "other target tokens", replace(batch, target_tokens=tokens)


def check_nothing_to_read(plugin: ModelPlugin, task: Task) -> None:
    """An example without a single number or word gets finite numbers, as do the gradients."""
    for case in cases(plugin, task):
        module, batch = case.fitted(plugin), masked(case.batch, 1)
        trained = by_gradients(plugin, module)
        for truth in case.truths:
            if not bool(torch.isfinite(drawn(module.eval(), batch, truth)).all()):
                raise CheckFailedError(
                    f"the prediction of an example with nothing to read is not finite at truth={truth}{case.about}; "
                    "look for means over no steps, and for attention to nothing"
                )
            found = gradients(module.train(), batch, truth, case.objective) if trained else {}
            for name, gradient in found.items():
                if gradient is not None and not bool(torch.isfinite(gradient).all()):
                    raise CheckFailedError(
                        f"the gradient of parameter '{name}' is not finite at truth={truth} with an example that has "
                        f"nothing to read{case.about}"
                    )


def check_no_label(plugin: ModelPlugin, task: Task) -> None:
    """A prediction does not depend on the label, neither in training nor after it."""
    for case in cases(plugin, task):
        module, batch = case.fitted(plugin), case.batch
        other = replace(batch, label=(given(batch.label) + 1) % case.problem.classes)
        for training in (False, True):
            module.train(training)
            if not close(drawn(module, other, 1.0), drawn(module, batch, 1.0)):
                raise CheckFailedError(
                    f"in {_mode(training)}, another label changes the prediction{case.about}; batch.label is for the "
                    "loss alone"
                )


def check_causality(plugin: ModelPlugin, task: Task) -> None:
    """At truth > 0, token k never sees target_tokens[k:]; at truth=0 no target matters. In training as well."""
    for case in cases(plugin, task):
        module, batch = case.fitted(plugin), case.batch
        target = given(batch.target_tokens)
        for training in (False, True):
            module.train(training)
            for truth in (1.0, 0.5):
                before = drawn(module, batch, truth)
                for k in range(target.shape[1]):
                    after = drawn(module, replace(batch, target_tokens=_other_from(target, k, case)), truth)
                    if not close(after[:, : k + 1], before[:, : k + 1]):
                        raise CheckFailedError(
                            f"in {_mode(training)} at truth={truth}, changing target_tokens[:, {k}:] changes the "
                            f"logits of token {k} or an earlier one; is the mask the right way round, and the "
                            "decoder's input shifted by one token, after [CLS]?"
                        )
            other = replace(batch, target_tokens=_other_from(target, 0, case))
            if not close(drawn(module, other, 0.0), drawn(module, batch, 0.0)):
                raise CheckFailedError(
                    f"in {_mode(training)} at truth=0, the prediction depends on batch.target_tokens: feed back the "
                    "model's own tokens instead"
                )


def _other_from(target: Tensor, k: int, case: Case) -> Tensor:
    """Other tokens from place k on."""
    changed = target.clone()
    changed[:, k:] = (changed[:, k:] + 3) % case.problem.target_vocabulary
    return changed


def check_hidden(plugin: ModelPlugin, task: Task) -> None:
    """What stands at hidden steps cannot reach a prediction, neither in training nor after it."""
    for case in cases(plugin, task):
        module, batch = case.fitted(plugin), case.batch
        hidden = given(batch.hidden)
        if batch.past is not None:
            other = replace(batch, past=torch.where(hidden[..., None] & batch.past_mask, batch.past + 7.0, batch.past))
        else:
            tokens = given(batch.tokens)
            other = replace(batch, tokens=torch.where(hidden, (tokens + 3) % case.problem.vocabulary, tokens))
        for training in (False, True):
            module.train(training)
            if not close(drawn(module, other, 1.0), drawn(module, batch, 1.0)):
                raise CheckFailedError(
                    f"in {_mode(training)}, what stands at hidden steps changes the prediction{case.about}: the "
                    "answer is seen; put something else where batch.hidden is True before anything else, "
                    "normalisation too"
                )


def _mode(training: bool) -> str:
    return "train()" if training else "eval()"

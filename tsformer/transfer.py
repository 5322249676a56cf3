"""Weights of an earlier run for a new model, and how fast each part of it then learns.

Only the parts that bear the same names in every network go over: `inputs`, which embeds, and `encoder`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tsformer import weights
from tsformer.data.cells import listed
from tsformer.data.tokens import Tokenizer
from tsformer.data.vocabulary import Vocabulary
from tsformer.errors import RunError, UsageError, in_words
from tsformer.nn.convolution import Patches
from tsformer.run import find
from tsformer.run_files import CONFIG, VOCABULARY, WEIGHTS, open_run, read_json
from tsformer.settings import TransferConfig
from tsformer.words import Words

SHARED = ("inputs.", "encoder.")
TABLE = "inputs.tokens.weight"  # a row for each word
TEXT = ("inputs.tokens.", "inputs.text_")
NUMBERS = "inputs.numbers_modality"
HIDDEN = "inputs.hidden_step"  # which only pretraining needs


@dataclass(frozen=True)
class Transfer:
    """What a module has taken over.

    Attributes:
        loaded: names of its parameters and buffers; of the table of words also when some rows of it are new.
        whole: those of which all numbers were loaded.
        lines: what was loaded and what was not, and why.
    """

    loaded: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()


@dataclass
class _Faults:
    """Tensors that do not go over, by reason."""

    by_reason: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        self.by_reason.setdefault(reason, []).append(name)

    def __str__(self) -> str:
        return "; ".join(f"{reason}: {listed(names)}" for reason, names in self.by_reason.items())


@dataclass(frozen=True)
class Earlier:
    """A run that a model starts from.

    Attributes:
        model: name of its model.
        tokenizer: None when it has read no texts.
    """

    folder: Path
    model: str
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer | None


def earlier_run(config: TransferConfig) -> Earlier | None:
    """The run that a model starts from; None when it starts from nothing.

    Raises:
        RunError: no such run, or a damaged one.
    """
    return None if config.init_from is None else read_run(find(config.init_from))


def take_over(module: nn.Module, earlier: Earlier | None, words: Words, *, frozen: bool) -> Transfer:
    """Load what an earlier run has into a new module, and freeze it if asked to.

    Args:
        words: of the new run.

    Raises:
        UsageError: nothing of it fits, or nothing is left to be trained.
    """
    if earlier is None:
        return Transfer()
    taken = load_encoder(module, earlier, words)
    if frozen:
        freeze(module, taken.whole)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise UsageError(f"--transfer.freeze leaves nothing to train: all was loaded from {earlier.folder}")
    return taken


def load_encoder(module: nn.Module, earlier: Earlier, words: Words) -> Transfer:
    """Put the inputs and the encoder of an earlier run, of any task, into a module, where name and shape agree.

    Rows of the table of words go over word by word, the special ones included; those of other words stay as they are.
    Neither the run's data plugin nor its model plugin need be here.

    Args:
        module: a new one; its own initial weights stay where nothing is loaded.
        words: of the new run.

    Raises:
        UsageError: nothing of it fits the module.
    """
    folder, model, theirs, tokenizer = earlier.folder, earlier.model, earlier.tensors, earlier.tokenizer
    own = module.state_dict()
    faults, loaded, whole, notes = _Faults(), set[str](), set[str](), list[str]()
    for name, tensor in own.items():
        if not name.startswith(SHARED):
            continue
        found = theirs.get(name)
        if found is None:
            faults.add("not there", name)
        elif name == TABLE and words.tokenizer and tokenizer and found.shape[1:] == tensor.shape[1:]:
            known = _copy_rows(tensor, found, words.tokenizer.vocabulary, tokenizer.vocabulary)
            loaded.add(name)
            if known == len(tensor):
                whole.add(name)
            notes.append(f"{known:,} of {len(tensor):,} words known there")
        elif found.shape != tensor.shape:
            faults.add("of another shape", f"{name} ({_size(found)} there, {_size(tensor)} here)")
        else:
            tensor.copy_(found)  # which is the module's own memory
            loaded.add(name)
            whole.add(name)
    for name in theirs:
        if name.startswith(SHARED) and name not in own and name != HIDDEN:
            faults.add("not here", name)
    if not loaded:
        reason = str(faults) or "neither has a part called encoder or inputs"
        raise UsageError(f"nothing of the run '{folder}' (model {model}) fits this model: {reason}")
    numbers = sum(own[name].numel() for name in loaded)
    told = [f"loaded {len(loaded)} tensors of the encoder ({model}, {numbers:,} numbers) from {folder}", *notes]
    new = dict.fromkeys(name.partition(".")[0] for name in own if not name.startswith(SHARED))
    lines = [", ".join(told) + (f"; {listed(list(new))} starts anew" if new else "")]
    if str(faults):
        lines.append(f"not loaded from {folder}: {faults}")
    return Transfer(frozenset(loaded), frozenset(whole), tuple(lines))


def freeze(module: nn.Module, names: Collection[str]) -> None:
    """Leave parameters as they are in training. Dropout among them acts as it does elsewhere."""
    for name, parameter in module.named_parameters():
        if name in names:
            parameter.requires_grad_(False)


def parameter_groups(
    module: nn.Module, config: TransferConfig, loaded: Collection[str] = frozenset()
) -> list[dict[str, Any]]:
    """What is trained, as groups for an optimiser, each with the "rate" that its learning rate is multiplied by.

    Parameters of the same rate are one group, in the module's order. Where two rates apply they are multiplied.

    Args:
        loaded: names of what was loaded.

    Raises:
        UsageError: a rate is given for what the module does not have.
    """
    members = {
        "loaded_rate": set(loaded),
        "numbers_rate": set(_of_numbers(module)),
        "text_rate": {name for name, _ in module.named_parameters() if name.startswith(TEXT)},
    }
    groups: dict[float, list[nn.Parameter]] = {}
    without = {name for name in members if getattr(config, name) != 1.0}
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        rate = 1.0
        for option, names in members.items():
            if name in names:
                rate *= getattr(config, option)
                without.discard(option)
        groups.setdefault(rate, []).append(parameter)
    if without:
        options = " and ".join(f"--transfer.{name.replace('_', '-')}" for name in members if name in without)
        raise UsageError(f"{options}: this model has no such part that is trained; leave it out")
    return [{"params": parameters, "rate": rate} for rate, parameters in groups.items()]


def _of_numbers(module: nn.Module) -> Iterator[str]:
    """Names of the parameters that embed numbers: patches and steps, unless these are of embedded tokens."""
    if getattr(getattr(module, "inputs", None), "of_tokens", False):
        return
    for part, submodule in module.named_modules():
        if isinstance(submodule, Patches) and part.startswith(SHARED):
            yield from (f"{part}.{name}" for name, _ in submodule.named_parameters())
    yield NUMBERS


def read_run(folder: Path) -> Earlier:
    """What a run has to give.

    Raises:
        RunError: missing, incomplete, damaged, or without weights.
    """
    manifest = open_run(folder)
    try:
        tensors = weights.read((folder / WEIGHTS).read_bytes())
    except (ValueError, OSError) as error:
        raise RunError(f"the weights in '{folder / WEIGHTS}' cannot be read: {error}") from None
    config = read_json(folder / CONFIG)
    spoken = read_json(folder / VOCABULARY) if VOCABULARY in manifest["files"] else None
    try:
        tokenizer = None if spoken is None else Words.from_json(spoken).tokenizer
        name = str(config["settings"]["model"]["name"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"'{folder}' is not a run: {in_words(error)}") from None
    if tokenizer is not None and len(tensors.get(TABLE, tokenizer.vocabulary)) != len(tokenizer.vocabulary):
        raise RunError(f"'{folder}' is not a run: its vocabulary and its table of words are not of one size")
    return Earlier(folder, name, tensors, tokenizer)


def _copy_rows(table: Tensor, theirs: Tensor, own: Vocabulary, there: Vocabulary) -> int:
    """Copy the rows of words that both know into a table; returns how many."""
    index: Mapping[str, int] = {word: row for row, word in enumerate(there.words[: len(theirs)])}
    pairs = [(row, index[word]) for row, word in enumerate(own.words[: len(table)]) if word in index]
    to, of = (torch.tensor(column) for column in zip(*pairs, strict=True))  # never empty: both know the special ones
    table[to] = theirs[of].to(table)
    return len(pairs)


def _size(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "one number"

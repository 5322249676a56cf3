"""Weights of an earlier run in a new model: what goes over, what does not, and how fast each part then learns."""

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from torch import nn

from tsformer import Forecaster, run_files
from tsformer.data.tokens import Tokenizer
from tsformer.data.vocabulary import SPECIAL, Vocabulary
from tsformer.errors import RunError, UsageError
from tsformer.nn.convolution import Patches
from tsformer.settings import TransferConfig
from tsformer.transfer import earlier_run, freeze, load_encoder, parameter_groups, read_run, take_over
from tsformer.words import Words

NO_WORDS = Words()


class Reads(nn.Module):
    """A network for words whose parts have the names of all networks."""

    def __init__(self, words=6, width=3, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.inputs = nn.Module()
        self.inputs.tokens = nn.Embedding(words, width)
        self.encoder = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)


class Counts(nn.Module):
    """A network for numbers."""

    def __init__(self, channels=2, width=4, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.encoder = nn.ModuleDict({"embed": Patches(channels, width, stride=1), "layers": nn.Linear(width, width)})
        self.decoder = nn.Linear(width, 1)


def spoken(*words):
    return Words(Tokenizer("word", True, Vocabulary((*SPECIAL, *words))))


def save(folder, module, words=NO_WORDS, name="strange"):
    """A run folder by hand, of a model plugin and of data that are not here."""
    folder.mkdir()
    contents = {
        run_files.CONFIG: run_files.to_json({"settings": {"model": {"name": name}, "data": {"name": "nowhere"}}}),
        run_files.TRANSFORMS: b"{}",
        run_files.WEIGHTS: safetensors.torch.save({k: v.clone() for k, v in module.state_dict().items()}),
        **({run_files.VOCABULARY: run_files.to_json(words.to_json())} if words else {}),
    }
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    manifest = {
        "format": run_files.FORMAT,
        "min_reader": run_files.FORMAT,
        "metrics": {},
        "status": "complete",
        "files": {file: run_files.fingerprint(content) for file, content in contents.items()},
    }
    (folder / run_files.MANIFEST).write_bytes(run_files.to_json(manifest))
    return folder


def numbers(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_encoder_and_inputs_go_over_and_nothing_else(tmp_path):
    old, new = Counts(seed=1), Counts(seed=2)
    before = numbers(new)
    taken = load_encoder(new, read_run(save(tmp_path / "run", old)), NO_WORDS)
    names = {name for name in before if name.startswith("encoder.")}
    assert taken.loaded == taken.whole == names
    for name, tensor in new.state_dict().items():
        assert torch.equal(tensor, (old.state_dict() if name in names else before)[name]), name
    total = sum(old.state_dict()[name].numel() for name in names)
    said = f"loaded 4 tensors of the encoder (strange, {total} numbers) from {tmp_path / 'run'}; decoder starts anew"
    assert taken.lines == (said,)


def test_another_shape_stays_and_is_named(tmp_path):
    old, new = Counts(channels=2, seed=1), Counts(channels=6, seed=2)
    before = numbers(new)
    taken = load_encoder(new, read_run(save(tmp_path / "run", old)), NO_WORDS)
    name = "encoder.embed.convolution.convolution.weight"
    if name not in before:
        name = next(n for n in before if n.startswith("encoder.embed") and n.endswith("weight"))
    assert name not in taken.loaded
    assert torch.equal(new.state_dict()[name], before[name])
    assert torch.equal(new.encoder["layers"].weight, old.encoder["layers"].weight)
    assert taken.lines[1] == f"not loaded from {tmp_path / 'run'}: of another shape: {name} (4x2x1 there, 4x6x1 here)"


def test_words_go_over_one_by_one(tmp_path):
    old, new = Reads(words=7, seed=1), Reads(words=6, seed=2)
    before = numbers(new)["inputs.tokens.weight"]
    folder = save(tmp_path / "run", old, spoken("cat", "dog", "sun"))
    taken = load_encoder(new, read_run(folder), spoken("sun", "moon"))
    table, theirs = new.inputs.tokens.weight, old.inputs.tokens.weight
    assert torch.equal(table[:4], theirs[:4])
    assert torch.equal(table[4], theirs[6])
    assert torch.equal(table[5], before[5])
    assert "inputs.tokens.weight" in taken.loaded - taken.whole
    assert "5 of 6 words known there" in taken.lines[0]


def test_the_same_words_in_another_order_are_all_loaded(tmp_path):
    words = ("cat", "dog", "sun")
    old, new = Reads(words=7, seed=1), Reads(words=7, seed=2)
    taken = load_encoder(new, read_run(save(tmp_path / "run", old, spoken(*words))), spoken(*words[::-1]))
    assert "inputs.tokens.weight" in taken.whole
    assert torch.equal(new.inputs.tokens.weight[[4, 5, 6]], old.inputs.tokens.weight[[6, 5, 4]])


def test_names_that_only_one_of_them_has(tmp_path):
    old, new = Reads(words=6), Reads(words=6)
    old.encoder.extra, new.encoder.more = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    lines = load_encoder(new, read_run(save(tmp_path / "run", old, spoken("a", "b"))), spoken("a", "b")).lines
    assert lines[1].endswith("not there: encoder.more; not here: encoder.extra")


@pytest.mark.parametrize("old", [Reads(width=5), nn.ModuleDict({"trunk": nn.Linear(2, 2)})])
def test_nothing_that_fits_is_an_error(tmp_path, old):
    new = Counts()
    with pytest.raises(UsageError) as caught:
        load_encoder(new, read_run(save(tmp_path / "run", old)), NO_WORDS)
    assert "(model strange) fits this model" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_or_damaged_run_is_said(tmp_path):
    with pytest.raises(RunError, match="no run folder"):
        read_run(tmp_path / "nowhere")
    folder = save(tmp_path / "run", Counts())
    content = bytearray((folder / run_files.WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / run_files.WEIGHTS).write_bytes(content)
    with pytest.raises(RunError, match="is damaged"):
        read_run(folder)


def test_a_configuration_that_is_none_is_said(tmp_path):
    folder = save(tmp_path / "run", Counts())
    (folder / run_files.CONFIG).write_bytes(b"{}")
    manifest = json.loads((folder / run_files.MANIFEST).read_text())
    manifest["files"][run_files.CONFIG] = run_files.fingerprint(b"{}")
    (folder / run_files.MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(RunError, match="is not a run: KeyError"):
        read_run(folder)


def test_what_is_frozen_stays_and_the_rest_learns(tmp_path):
    old, new = Counts(seed=1), Counts(seed=2)
    config = TransferConfig(init_from=str(save(tmp_path / "run", old)), freeze=True)
    taken = take_over(new, earlier_run(config), frozen=config.freeze, words=NO_WORDS)
    groups = parameter_groups(new, config, taken.loaded)
    before = numbers(new)
    optimizer = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.5)
    new.decoder(new.encoder["layers"](torch.ones(3, 4))).sum().backward()
    optimizer.step()
    for name, tensor in new.state_dict().items():
        assert torch.equal(tensor, before[name]) == name.startswith("encoder."), name


def test_a_table_with_new_words_is_not_frozen(tmp_path):
    config = TransferConfig(init_from=str(save(tmp_path / "run", Reads(5), spoken("a"))), freeze=True)
    new = Reads(6)
    take_over(new, earlier_run(config), frozen=config.freeze, words=spoken("a", "b"))
    assert new.inputs.tokens.weight.requires_grad
    assert not new.encoder.weight.requires_grad


def test_freezing_all_is_an_error(tmp_path):
    new = nn.ModuleDict({"encoder": nn.Linear(2, 2)})
    config = TransferConfig(init_from=str(save(tmp_path / "run", copy.deepcopy(new))), freeze=True)
    with pytest.raises(UsageError, match=r"--transfer.freeze leaves nothing to train"):
        take_over(new, earlier_run(config), frozen=config.freeze, words=NO_WORDS)


def test_nothing_is_taken_over_unasked():
    module = Counts()
    before = numbers(module)
    taken = take_over(module, earlier_run(TransferConfig()), NO_WORDS, frozen=False)
    assert (taken.loaded, taken.lines) == (frozenset(), ())
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def test_one_group_where_all_rates_are_the_same():
    module = Counts()
    (group,) = parameter_groups(module, TransferConfig())
    assert group["rate"] == 1.0
    assert all(ours is theirs for ours, theirs in zip(group["params"], module.parameters(), strict=True))


def rates(module, config, loaded=()):
    groups = parameter_groups(module, config, loaded)
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    return {names[id(parameter)]: group["rate"] for group in groups for parameter in group["params"]}


def test_rates_multiply():
    found = rates(Reads(), TransferConfig(init_from="x", loaded_rate=0.5, text_rate=0.1), ["inputs.tokens.weight"])
    assert found.pop("inputs.tokens.weight") == pytest.approx(0.05)
    assert set(found.values()) == {1.0}
    config = TransferConfig(init_from="x", loaded_rate=0.5, numbers_rate=4.0)
    found = rates(Counts(), config, ["encoder.layers.weight", "encoder.layers.bias"])
    assert {found[name] for name in found if name.startswith("encoder.embed")} == {4.0}
    assert found["encoder.layers.weight"] == found["encoder.layers.bias"] == 0.5
    assert found["decoder.weight"] == 1.0


def test_steps_of_embedded_words_are_no_numbers():
    module = Counts()
    module.inputs = nn.Module()
    module.inputs.of_tokens = True
    with pytest.raises(UsageError, match=r"--transfer.numbers-rate: this model has no such part"):
        parameter_groups(module, TransferConfig(numbers_rate=0.5))


def test_rates_of_what_is_not_there_are_refused():
    with pytest.raises(UsageError, match=r"--transfer.text-rate: this model has no such part that is trained"):
        parameter_groups(Counts(), TransferConfig(text_rate=0.5))
    frozen = Reads()
    freeze(frozen, ["inputs.tokens.weight"])
    with pytest.raises(UsageError, match=r"--transfer.text-rate"):
        parameter_groups(frozen, TransferConfig(text_rate=0.5))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small run that the toolkit made."""
    rows = pd.DataFrame({"y": np.sin(np.arange(120) / 3)}, index=pd.date_range("2020-01-01", periods=120))
    options = {"d_model": 8, "d_ff": 8, "n_heads": 2, "encoder_layers": 1}
    forecaster = Forecaster(
        "transformer", horizon=2, lookback=6, model_options=options, train_options={"max_steps": 2}
    ).fit(rows)
    return Path(forecaster.save(tmp_path_factory.mktemp("runs") / "run")), forecaster.fitted_.module


def test_a_run_of_the_toolkit_goes_over_into_another_horizon(run):
    folder, module = run
    new = copy.deepcopy(module)
    for parameter in new.parameters():
        nn.init.zeros_(parameter)
    taken = load_encoder(new, read_run(folder), NO_WORDS)
    assert taken.loaded
    for name, parameter in new.named_parameters():
        expected = module.get_parameter(name) if name.startswith("encoder.") else torch.zeros_like(parameter)
        assert torch.equal(parameter, expected), name

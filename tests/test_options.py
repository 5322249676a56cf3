"""The options that Transformers share: what they build, and what is refused, by name."""

from typing import Literal

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from tsformer_plugins.models import tcn_transformer, transformer

import tsformer
from tsformer import registry
from tsformer.cli.line_config import with_switches
from tsformer.cli.options import normalised
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.attention import MultiHeadAttention
from tsformer.nn.convolution import Patches
from tsformer.nn.decoders import AutoregressiveDecoder
from tsformer.nn.options import TransformerOptions
from tsformer.nn.positions import LearnedPositions, NoPositions, SinusoidalPositions
from tsformer.plugin import Config, Field, ModelPlugin, Problem, Task
from tsformer.registry import Kind
from tsformer.testing import check

MODELS = pytest.mark.parametrize("module", [transformer, tcn_transformer])
PROBLEM = Problem(lookback=20, horizon=5, targets=2)


def model_of(name: str, options: dict[str, object]) -> Config:
    """A model's options as a line gives them, for forecasts."""
    return resolve([Layer({"model": {"name": name, **options}})], needs_data=False).model.config


@pytest.mark.parametrize("model", ["transformer", "tcn_transformer"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"d_model": 16, "n_heads": 3}, "--model: n_heads 3 does not divide d_model 16"),
        (
            {"d_model": 20, "n_heads": 4, "positions": "rotary"},
            "--model: positions rotary .* 20 / n_heads 4 must be even",
        ),
        ({"eps": 0.0}, "--model.eps: .* greater than 0"),
        ({"attention_dropout": 1.0}, "--model.attention-dropout: .* less than 1"),
        ({"activation": "swish"}, "--model.activation: .*'relu', 'gelu' or 'swiglu'"),
        ({"positions": "sines"}, "--model.positions: .*'sinusoidal', 'learned', 'relative', 'rotary' or 'none'"),
    ],
)
def test_a_fault_is_one_line_with_the_name_of_the_option(model: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        model_of(model, options)
    assert "\n" not in str(caught.value)


UNREAD = {
    "transformer": [
        (
            {"sampling": "two_pass"},
            ["sampling two_pass needs decoder autoregressive: decoder direct feeds nothing"],
        ),
        (
            {"n_heads": 3, "feedback": "sample"},
            ["feedback sample needs decoder", "n_heads 3 does not divide d_model"],
        ),
        (
            {"encoder_layers": 0, "positions": "rotary"},
            ["positions rotary needs encoder layers, and encoder_layers is"],
        ),
        ({"encoder_layers": 0, "positions": "relative", "decoder": "autoregressive"}, ["positions relative needs enc"]),
    ],
    "tcn_transformer": [
        ({"decoder_layers": 3}, ["decoder_layers 3 needs decoder autoregressive: decoder direct is a linear head"]),
        ({"tcn_layers": 0, "kernel": 5}, ["kernel 5 needs convolutions, and tcn_layers is 0"]),
        (
            {"encoder_layers": 0, "positions": "relative", "attention_dropout": 0.1, "d_ff": 8},
            ["positions relative needs layers", "d_ff 8 needs layers", "attention_dropout 0.1 needs layers"],
        ),
        ({"encoder_layers": 0, "tcn_layers": 0, "dropout": 0.1}, ["dropout 0.1 needs layers"]),
        (
            {"encoder_layers": 0, "d_model": 12, "positions": "rotary", "n_heads": 5},
            ["positions rotary needs layers", "n_heads 5 needs layers"],  # and not that 5 does not divide 12
        ),
        ({"encoder_layers": 0, "d_model": 6, "decoder": "autoregressive"}, ["n_heads 4 does not divide d_model 6"]),
        (
            {"encoder_layers": 0, "tcn_layers": 0, "positions": "rotary", "decoder": "autoregressive"},
            ["positions rotary needs encoder layers"],
        ),
    ],
    "lstm": [
        (
            {"n_heads": 2, "d_ff": 8, "decoder_layers": 1},
            [f"{option} needs decoder autoregressive" for option in ("decoder_layers 1", "n_heads 2", "d_ff 8")],
        ),
        (
            {"head": "last", "decoder": "autoregressive", "n_heads": 5},
            ["head last needs decoder direct", "n_heads 5 does not divide d_model 64"],
        ),
    ],
    "tcn": [({"sampling": "two_pass", "d_ff": 8}, ["sampling two_pass needs decoder", "d_ff 8 needs decoder"])],
}


@pytest.mark.parametrize(
    ("model", "options", "said"), [(model, *case) for model, cases in UNREAD.items() for case in cases]
)
def test_options_that_nothing_reads_are_refused_all_at_once(
    model: str, options: dict[str, object], said: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        model_of(model, options)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("--model: ") for line in lines)
    faults = [fault for line in lines for fault in line.removeprefix("--model: ").split("; ")]
    assert len(faults) == len(said)
    for fault, start in zip(faults, said, strict=True):
        assert fault.startswith(start)


@pytest.mark.parametrize("model", ["transformer", "tcn_transformer", "lstm", "tcn", "linear"])
def test_what_is_at_its_default_is_never_refused(model: str) -> None:
    config = registry.get(Kind.MODEL, model).config
    for decoder in ("direct", "autoregressive") if "decoder" in config.model_fields else (None,):
        options = config().model_dump() | ({"decoder": decoder} if decoder else {})
        assert model_of(model, options).model_dump() == options


def test_an_encoder_without_layers_may_have_convolutions() -> None:
    options = {"encoder_layers": 0, "positions": "rotary", "decoder": "autoregressive"}  # which the decoder reads
    assert model_of("tcn_transformer", options).positions == "rotary"


@pytest.mark.parametrize("d_model", [6, 7])
def test_without_attention_any_width_will_do(d_model: int) -> None:
    config = model_of("tcn_transformer", {"encoder_layers": 0, "d_model": d_model})
    network = tcn_transformer.build(config, PROBLEM)
    assert not [part for part in network.modules() if isinstance(part, MultiHeadAttention)]
    past = torch.randn(3, 20, 2)
    assert network(Batch(past, torch.ones_like(past, dtype=torch.bool))).shape == (3, 5, 2, 1)


def test_an_odd_head_is_fine_without_rotation() -> None:
    assert transformer.TransformerConfig(d_model=20, positions="relative").d_model == 20


@MODELS
def test_options_reach_every_layer(module: object) -> None:
    config = module.plugin.config(
        d_model=12,
        n_heads=3,
        d_ff=7,
        encoder_layers=3,
        decoder_layers=2,
        dropout=0.1,
        attention_dropout=0.2,
        norm_first=True,
        eps=0.5,
        activation="swiglu",
        positions="rotary",
        decoder="autoregressive",
    )
    network = module.plugin.build(config, PROBLEM)
    layers = [*network.encoder.layers.layers, *network.decoder.layers.layers]
    assert len(layers) == 5
    for layer in layers:
        assert layer.self_attention.n_heads == 3
        assert layer.self_attention.rotary is not None
        assert layer.feed_forward.gate.weight.shape == (7, 12)
        assert all(residual.norm_first and residual.dropout.p == 0.1 for residual in layer.residuals)
    attentions = [part for part in network.modules() if isinstance(part, MultiHeadAttention)]
    assert len(attentions) == 7
    assert all(part.dropout.p == 0.2 for part in attentions)
    assert sum(part.rotary is not None for part in attentions) == 5  # not across
    norms = [part for part in network.modules() if isinstance(part, nn.LayerNorm)]
    assert len(norms) == 3 * 2 + 2 * 3 + 2
    assert all(norm.eps == 0.5 for norm in norms)


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        ("sinusoidal", SinusoidalPositions),
        ("learned", LearnedPositions),
        ("relative", NoPositions),
        ("none", NoPositions),
    ],
)
def test_positions_are_added_in_one_place_or_none(kind: str, added: type[nn.Module]) -> None:
    network = transformer.build(transformer.TransformerConfig(positions=kind, decoder="autoregressive"), PROBLEM)
    assert type(network.encoder.positions) is type(network.decoder.positions) is added
    biased = [p for p in network.modules() if isinstance(p, MultiHeadAttention) and p.relative is not None]
    assert len(biased) == (4 if kind == "relative" else 0)


def test_learned_tables_are_as_long_as_what_they_count() -> None:
    def lengths(module: object, **options: object) -> tuple[int, int]:
        config = module.plugin.config(positions="learned", decoder="autoregressive", **options)
        network = module.plugin.build(config, PROBLEM)
        return len(network.encoder.positions.table), len(network.decoder.positions.table)

    assert lengths(transformer) == (20, 5)
    assert lengths(tcn_transformer, stride=3) == (7, 5)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"decoder": "autoregressive", "positions": "learned"}, "other positions than learned"),
        (
            {"decoder": "direct", "positions": "learned"},
            "--model.decoder autoregressive and other positions than learned, which goes on",
        ),
        ({"decoder": "direct"}, "--model.decoder autoregressive"),
    ],
)
def test_beyond_the_horizon_the_remedy_is_named(options: dict[str, str], remedy: str) -> None:
    table = pd.DataFrame({"ds": pd.date_range("2024", periods=120, freq="D"), "y": np.sin(np.arange(120) / 3)})
    model = tsformer.Forecaster(
        model="transformer",
        horizon=4,
        lookback=8,
        model_options={"d_model": 8, "n_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "d_ff": 8, **options},
        train_options={"max_steps": 1},
    ).fit(table)
    assert len(model.predict(horizon=3)) == 3
    with pytest.raises(UsageError, match=f"horizon of 4 steps and cannot predict 6; .*{remedy}") as caught:
        model.predict(horizon=6)
    assert "\n" not in str(caught.value)


class Options(TransformerOptions):
    """Of somebody else's model: a field of its own, and another default."""

    kernel: int = Field(3, gt=0, description="steps that a token sees")
    positions: Literal["rotary", "none"] = Field("rotary", description="rotation of queries and keys, or nothing")


class Theirs(nn.Module):
    def __init__(self, config: Options, problem: Problem) -> None:
        super().__init__()
        self.embed = Patches(problem.channels, config.d_model, 1, config.kernel)
        self.layers = config.build_encoder()

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x, mask = self.embed(x, mask)
        return self.layers(x, mask), mask


def theirs(config: Options, problem: Problem) -> nn.Module:
    return config.build_network(problem, lambda inner: Theirs(config, inner), config.build_autoregressive)


def test_a_plugin_of_somebody_else_builds_on_them() -> None:
    example = Options(d_model=16, n_heads=2, encoder_layers=1, decoder_layers=1, d_ff=32)
    assert issubclass(Options, Config)
    network = theirs(example, PROBLEM)
    assert isinstance(network.decoder, AutoregressiveDecoder)
    past = torch.randn(2, 20, 2)
    assert network(Batch(past, torch.ones_like(past, dtype=torch.bool))).shape == (2, 5, 2, 1)
    plugin = ModelPlugin(config=Options, build=theirs, example=example, covariates={"future", "static"})
    assert check(plugin) == {}


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("fit --freeze --lr 1", "fit --freeze=true --lr 1"),
        ("fit --transfer.freeze", "fit --transfer.freeze=true"),
        ("fit --freeze false --model.d_model 3", "fit --freeze false --model.d-model 3"),
        ("fit --freeze=no --tokens.lower", "fit --freeze=no --tokens.lower=true"),
        ("fit --lr -- --freeze", "fit --lr -- --freeze"),
        (
            "fit --model transformer --model.tie-embeddings --model.norm-first",
            "fit --model transformer --model.tie-embeddings=true --model.norm-first=true",
        ),
        ("fit --model tcn --model.tie-embeddings false", "fit --model tcn --model.tie-embeddings false"),
    ],
)
def test_a_switch_may_go_without_its_value(line: str, read: str) -> None:
    assert with_switches(normalised(line.split())) == read.split()


OF_TOKENS = Problem(task=Task.CLASSIFY, lookback=6, output="classes", vocabulary=9, classes=2)
OF_NUMBERS = Problem(task=Task.CLASSIFY, lookback=6, output="classes", past_covariates=2, classes=2)
WRITES = Problem(task=Task.SEQUENCE, lookback=6, horizon=4, output="tokens", vocabulary=9, target_vocabulary=9)
HIDES = Problem(task=Task.PRETRAIN, lookback=6, output="hidden", vocabulary=9)


@pytest.mark.parametrize(
    ("model", "options", "problem", "read"),
    [
        ("transformer", {"revin": True}, OF_NUMBERS, True),
        ("transformer", {"revin": True}, OF_TOKENS, False),
        ("transformer", {"revin": True}, WRITES, False),
        ("transformer", {"channel_independent": True}, OF_NUMBERS, False),
        ("tcn_transformer", {"channel_independent": False}, WRITES, False),
        ("lstm", {"channel_independent": False}, HIDES, False),
        ("lstm", {"n_heads": 8}, OF_TOKENS, False),
        ("lstm", {"n_heads": 8}, WRITES, True),
        ("tcn", {"d_ff": 99}, HIDES, False),
        ("tcn", {"d_ff": 99, "chunk": 3}, OF_TOKENS, True),
        ("transformer", {"encoder_layers": 0, "d_ff": 77}, OF_TOKENS, False),
        ("transformer", {"encoder_layers": 0, "d_ff": 77}, WRITES, True),
    ],
)
def test_an_option_that_a_task_does_not_read_is_refused(model, options, problem, read) -> None:
    plugin = registry.get(Kind.MODEL, model)
    config = plugin.config(**options)
    if read:
        plugin.build(config, problem)
    else:
        with pytest.raises(UsageError):
            plugin.build(config, problem)

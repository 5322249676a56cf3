"""Lines that name members, and everything that may be wrong with them."""

import pytest
from tsformer_plugins.models.ensemble import EnsembleConfig, plugin

from tsformer.cli.environment import read_environment
from tsformer.config import resolve
from tsformer.config_layer import Layer, read_file
from tsformer.errors import UsageError
from tsformer.members import read_members, train_options
from tsformer.settings import TrainConfig


def test_a_line():
    (member,), faults = read_members(
        ["tcn_transformer lookback=336 d-model=64 revin=false stride=16 train.loss=mae train.lr=3e-4 weight=2"]
    )
    assert faults == []
    assert (member.number, member.name, member.lookback, member.weight) == (1, "tcn_transformer", 336, 2.0)
    assert (member.config.d_model, member.config.revin, member.config.stride) == (64, False, 16)
    assert member.train == {"loss": "mae", "lr": 3e-4}
    assert member.title == "1 tcn_transformer"
    own = train_options(member, TrainConfig(lr=0.1, max_steps=7), seed=5)
    assert own == TrainConfig(loss="mae", lr=3e-4, max_steps=7, seed=5)


def test_quotes_hold_blanks_together():
    (member,), faults = read_members(["ridge 'normalise=last' \"model.penalty=0.5\""])
    assert faults == []
    assert (member.config.normalise, member.config.penalty) == ("last", 0.5)


def test_every_plugin_may_come_again():
    members, faults = read_members(["ridge", "ridge lookback=5", "ridge"])
    assert faults == []
    assert [member.number for member in members] == [1, 2, 3]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("transformer d_modle=64", "d_modle: unknown option; did you mean 'd_model'?"),
        ("transformer d_model=65", "n_heads 4 does not divide d_model 65"),
        ("transformer d_model=wide", "d_model: input should be a valid integer"),
        ("transformer train.losss=mae", "train.losss: unknown option; did you mean 'loss'?"),
        ("transformer train.loss=best", "train.loss: input should be"),
        ("transformer train.output=normal", "train.output is that of the whole ensemble: give --train.output"),
        ("transformer train.hidden_share=0.5", "train.hidden_share 0.5 is for pretrain, and the task is forecast"),
        ("transformer horizon=3", "horizon: unknown option; 'horizon' belongs to window"),
        ("ridge lookback=0", "lookback: input should be greater than or equal to 1"),
        ("ridge weight=-1", "weight: input should be greater than 0"),
        ("ridge penalty=1 penalty=2", "penalty is given twice"),
        ("ridge penalty", "'penalty' is no option: options are written name=value"),
        ("rigde", "unknown model 'rigde'; did you mean 'ridge'?"),
        ("ensemble", "ensemble is made of members itself: name those here"),
        ("bag_of_words", "model 'bag_of_words' cannot forecast"),
        ("ridge 'penalty=1", "no closing quotation"),
        ("", "begin with the name of a model, as in 'ridge lookback=512'"),
        ("lookback=512", "begin with the name of a model"),
    ],
)
def test_faults(line, fault):
    members, faults = read_members(["ridge", line])
    assert len(members) == 1
    assert len(faults) == 1
    assert faults[0].startswith(f"member 2 '{line}': {fault}")


def test_all_faults_at_once():
    layer = Layer({"model": {"name": "ensemble", "members": ["ridge x=1 y=2", "linear", "nothing"], "weights": "best"}})
    with pytest.raises(UsageError) as failure:
        resolve([layer], needs_data=False)
    assert str(failure.value).startswith("--model.weights: ")
    layer = Layer({"model": {"name": "ensemble", "members": ["ridge x=1 y=2", "linear", "nothing"]}})
    with pytest.raises(UsageError, match=r"member 1 .*: x: .*; member 1 .*: y: .*; member 3 'nothing': unknown model"):
        resolve([layer], needs_data=False)
    with pytest.raises(UsageError, match=r"weight of member 2 needs weights equal, not validation"):
        resolve(
            [Layer({"model": {"name": "ensemble", "members": ["ridge", "linear weight=2"], "weights": "validation"}})],
            needs_data=False,
        )
    with pytest.raises(UsageError, match=r"--model\.members"):
        resolve([Layer({"model": {"name": "ensemble", "members": []}})], needs_data=False)


def test_members_in_a_file_and_in_the_environment(tmp_path):
    file = tmp_path / "fit.toml"
    file.write_text('[model]\nname = "ensemble"\nmembers = ["ridge lookback=51", "linear"]\n')
    settings = resolve([read_file(str(file))], needs_data=False)
    assert [(member.name, member.lookback) for member in settings.model.members] == [("ridge", 51), ("linear", None)]
    variables = {"TSFORMER_OPT__MODEL__MEMBERS": "drift, ridge lookback=7"}
    settings = resolve([read_file(str(file)), read_environment(variables)], needs_data=False)
    assert [(member.name, member.lookback) for member in settings.model.members] == [("drift", None), ("ridge", 7)]
    again = resolve([Layer(settings.to_json())], needs_data=False)
    assert again.model == settings.model


def test_members_by_default():
    names = [member.name for member in plugin.members(EnsembleConfig())]
    assert names == ["ridge", "tcn_transformer"]
    assert plugin.lookback(EnsembleConfig(), 12) == 1
    assert plugin.lookback(EnsembleConfig(members=("ridge lookback=5", "drift", "linear lookback=9")), 12) == 9
    assert plugin.lookback(EnsembleConfig(members=("ridge lookback=5", "seasonal_naive")), 12) == 12

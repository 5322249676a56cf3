"""Several models, each with options and a lookback of its own, whose forecasts are averaged.

Each is trained by itself, by the loop or as its plugin says; the ensemble is saved and loaded as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from tsformer.ensemble import Ensemble, Weights
from tsformer.members import Member, read_members
from tsformer.plugin import Config, Field, ModelPlugin, Problem


class EnsembleConfig(Config):
    """Options of an ensemble."""

    members: tuple[str, ...] = Field(
        ("ridge", "tcn_transformer"),
        min_length=1,
        max_length=64,
        description="a member each time: name of a model, then options of it (d_model=64), its lookback (lookback=512; "
        "default: the window's), training options (train.loss=mae), and its weight (weight=2; default: 1)",
    )
    weights: Weights = Field(
        "equal",
        description="equal: 1, or the weight that members name; validation: those, none below 0, of which the squared "
        "error on the validation part is least, drawn towards equal ones the more, the fewer rows that part has",
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        members, faults = read_members(self.members)
        yield from faults
        if self.weights != "equal":
            named = [member for member in members if member.weight is not None]
            yield from (f"weight of member {member.number} needs weights equal, not {self.weights}" for member in named)


def members(config: EnsembleConfig) -> list[Member]:
    """The members."""
    return read_members(config.members)[0]


def build(config: EnsembleConfig, problem: Problem) -> nn.Module:
    """The module of all members."""
    return Ensemble(members(config), problem, config.weights)


def lookback(config: EnsembleConfig, season: int) -> int:
    """The longest that a member names, or needs where it names none."""
    return max(member.lookback or member.least_lookback(season) or 1 for member in members(config))


plugin = ModelPlugin(
    config=EnsembleConfig,
    build=build,
    example=EnsembleConfig(
        members=(
            "ridge lookback=6",
            "tcn_transformer d_model=16 n_heads=2 stride=2 tcn_layers=2 encoder_layers=1 d_ff=32",
        )
    ),
    covariates={"future", "static"},
    members=members,
    lookback=lookback,
)

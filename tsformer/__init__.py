"""tsformer: trained Transformer-family models from tables of numbers or texts; everything that varies is a plugin.

The names below are imported when they are first used, so that `import tsformer` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsformer.backtesting import backtest as backtest
    from tsformer.classifier import Classifier as Classifier
    from tsformer.data.panel import Panel as Panel
    from tsformer.data.sequences import Sequences as Sequences
    from tsformer.data.windows import Batch as Batch
    from tsformer.forecaster import Forecaster as Forecaster
    from tsformer.loading import load as load
    from tsformer.plugin import Config as Config
    from tsformer.plugin import DataPlugin as DataPlugin
    from tsformer.plugin import Field as Field
    from tsformer.plugin import ModelPlugin as ModelPlugin
    from tsformer.plugin import Problem as Problem
    from tsformer.plugin import Task as Task
    from tsformer.plugin import TransformPlugin as TransformPlugin
    from tsformer.registry import register as register
    from tsformer.sources import read as read
    from tsformer.tuning.forecasters import tune as tune

__version__ = "0.2.0"

_HOMES = {
    "Batch": "tsformer.data.windows",
    "Classifier": "tsformer.classifier",
    "Config": "tsformer.plugin",
    "DataPlugin": "tsformer.plugin",
    "Field": "tsformer.plugin",
    "Forecaster": "tsformer.forecaster",
    "ModelPlugin": "tsformer.plugin",
    "Panel": "tsformer.data.panel",
    "Problem": "tsformer.plugin",
    "Sequences": "tsformer.data.sequences",
    "Task": "tsformer.plugin",
    "TransformPlugin": "tsformer.plugin",
    "backtest": "tsformer.backtesting",
    "load": "tsformer.loading",
    "read": "tsformer.sources",
    "register": "tsformer.registry",
    "tune": "tsformer.tuning.forecasters",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tsformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

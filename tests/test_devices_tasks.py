"""Other tasks than forecasts on devices and in precisions that are not at hand; see test_devices."""

import pytest
import torch

from tsformer import registry
from tsformer.plugin import Task
from tsformer.registry import Kind
from tsformer.testing.cases import cases
from tsformer.testing.problem import build

NETWORKS = ("transformer", "tcn_transformer", "lstm", "tcn")
FED = {Task.SEQUENCE: (0.0, 0.5, 1.0)}  # the others feed nothing back
EACH = [
    pytest.param(name, task, number, id=f"{name}-{task}-{number}")
    for name in NETWORKS
    for task, kinds in ((Task.CLASSIFY, 3), (Task.SEQUENCE, 1), (Task.PRETRAIN, 3))
    for number in range(kinds)
]


def case_of(name, task, number):
    plugin = registry.get(Kind.MODEL, name)
    case = cases(plugin, task)[number]
    return case, build(plugin, problem=case.problem)


@pytest.mark.parametrize(("name", "task", "number"), EACH)
def test_no_tensor_is_made_on_another_device(name, task, number):
    case, network = case_of(name, task, number)
    network, batch = network.to("meta"), case.batch.to("meta")
    if task is Task.SEQUENCE:  # of the truth, for a search looks at what it finds
        assert network(batch, truth=1.0).device.type == "meta"
    else:
        assert network(batch).device.type == "meta"


@pytest.mark.parametrize(("name", "task", "number"), EACH)
def test_half_precision_trains(name, task, number):
    case, network = case_of(name, task, number)
    with torch.autocast("cpu", torch.bfloat16):
        for truth in FED.get(task, (0.0,)):
            case.objective.loss(network(case.batch, truth=truth), case.batch).backward()
        with torch.no_grad():
            assert network.eval()(case.batch).isfinite().all()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(
    ("task", "options"),
    [
        *((Task.CLASSIFY, {"pooling": kind}) for kind in ("cls", "max", "attention")),
        (Task.CLASSIFY, {"chunk": 4, "chunk_stride": 2}),
        (Task.CLASSIFY, {"revin": True}),
        (Task.SEQUENCE, {"tie_embeddings": True}),
        (Task.SEQUENCE, {"tie_embeddings": True, "sampling": "two_pass"}),
    ],
)
def test_options_in_half_precision(task, options):
    plugin = registry.get(Kind.MODEL, "transformer")
    small = {"d_model": 16, "n_heads": 2, "encoder_layers": 1, "d_ff": 32}
    for case in cases(plugin, task):
        if options.get("revin") and not case.problem.channels:
            continue
        network = plugin.build(plugin.config(**small, **options), case.problem)
        with torch.autocast("cpu", torch.bfloat16):
            for truth in FED.get(task, (0.0,)):
                case.objective.loss(network(case.batch, truth=truth), case.batch).backward()
        assert all(parameter.grad.isfinite().all() for parameter in network.parameters())
        if "chunk" not in options and task is Task.CLASSIFY:
            assert network.to("meta")(case.batch.to("meta")).device.type == "meta"

"""Chunks: against a plain loop over them, what padding must not change, and what a long sequence costs."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tsformer.nn.chunks import Chunks
from tsformer.nn.convolution import Patches
from tsformer.nn.layers import Encoder, LayerSpec
from tsformer.nn.pooling import PoolingKind
from tsformer.nn.positions import SinusoidalPositions, sinusoid

WIDTH, D_MODEL = 3, 8
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


class Local(nn.Module):
    """An encoder with a strided stem, positions and attention: what is sensitive to padding, and must not be.

    Attributes:
        chunks: how many it has been given.
    """

    def __init__(self, stride: int = 1, attention_dropout: float = 0.0) -> None:
        super().__init__()
        self.embed = Patches(WIDTH, D_MODEL, stride, kernel=stride + 1)
        self.positions = SinusoidalPositions(D_MODEL)
        self.layers = Encoder(1, LayerSpec(D_MODEL, n_heads=2, d_ff=16, attention_dropout=attention_dropout))
        self.chunks = 0

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        self.chunks += len(x)
        x, mask = self.embed(x, mask)
        return self.layers(self.positions(x, mask), mask), mask


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def _upper() -> Encoder:
    return Encoder(1, LayerSpec(D_MODEL, n_heads=2, d_ff=16))


def _padded(lengths: list[int], time: int) -> tuple[Tensor, Tensor]:
    mask = torch.arange(time) >= time - torch.tensor(lengths)[:, None]
    return torch.where(mask[..., None], torch.randn(len(lengths), time, WIDTH), 0.0), mask


def _loop(chunks: Chunks, encoder: Local, steps: Tensor) -> Tensor:
    """What a plain loop over the chunks of one example `[time, width]` makes of it: `[n_chunks, d_model]`."""
    pooled, end = [], len(steps)
    while True:
        part = steps[None, max(0, end - chunks.chunk) : end]
        tokens, mask = encoder(part, torch.ones(part.shape[:2], dtype=torch.bool))
        pooled.insert(0, chunks.pooling(tokens, mask)[0])
        if end <= chunks.chunk:
            break
        end -= chunks.stride
    memory = torch.stack(pooled)
    return chunks.upper((memory + sinusoid(len(memory), D_MODEL))[None])[0]


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    padding=st.integers(0, 9),
    chunk=st.integers(1, 12),
    data=st.data(),
)
def test_equals_a_plain_loop(lengths: list[int], padding: int, chunk: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, chunk))
    pooling: PoolingKind = data.draw(st.sampled_from(["mean", "max", "cls", "attention"]))
    chunks, encoder = Chunks(chunk, stride, D_MODEL, _upper(), pooling), Local(data.draw(st.integers(1, 3)))
    x, mask = _padded(lengths, max(lengths) + padding)
    memory, memory_mask = chunks(encoder, x, mask)
    counts = [1 + max(0, math.ceil((length - chunk) / stride)) for length in lengths]
    assert memory_mask.sum(1).tolist() == counts
    assert encoder.chunks == sum(counts)  # none that is all padding
    for row, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        assert memory_mask[row, -count:].all()
        torch.testing.assert_close(memory[row, -count:], _loop(chunks, encoder, x[row, -length:]), **CLOSE)


@pytest.mark.parametrize("padding", [1, 2, 3, 5, 8, 50])
def test_padding_changes_nothing(padding: int) -> None:
    chunks, encoder = Chunks(8, 3, D_MODEL, _upper()), Local(2)
    x, mask = _padded([23, 8, 1], 23)
    memory, memory_mask = chunks(encoder, x, mask)
    more = torch.cat([torch.full((3, padding, WIDTH), 1e6), x], dim=1)
    longer, longer_mask = chunks(encoder, more, torch.cat([torch.zeros(3, padding).bool(), mask], dim=1))
    extra = longer.shape[1] - memory.shape[1]
    assert not longer_mask[:, :extra].any()
    assert torch.equal(longer_mask[:, extra:], memory_mask)
    torch.testing.assert_close(longer[:, extra:][memory_mask], memory[memory_mask], **CLOSE)


def test_nan_behind_the_mask_changes_neither_value_nor_gradient() -> None:
    chunks, encoder = Chunks(4, 2, D_MODEL, _upper()), Local()
    clean, mask = _padded([11, 3, 0], 13)
    mask[0, 6] = False  # a step that is missing in between
    results = []
    for behind in (0.0, math.nan):
        x = torch.where(mask[..., None], clean, behind).requires_grad_()
        chunks.zero_grad()
        encoder.zero_grad()
        memory, memory_mask = chunks(encoder, x, mask)
        memory[memory_mask].square().sum().backward()
        gradients = [parameter.grad.clone() for module in (chunks, encoder) for parameter in module.parameters()]
        results.append([memory[memory_mask].detach(), x.grad, *gradients])
    for ours, expected in zip(*results, strict=True):
        assert torch.equal(ours, expected)
    assert (results[0][1][~mask] == 0).all()


def test_an_encoder_need_not_beware_of_nan() -> None:
    chunks, linear = Chunks(4, 2, D_MODEL, _upper()), nn.Linear(WIDTH, D_MODEL)
    x, mask = _padded([11, 3], 13)
    x[~mask] = math.nan
    memory, memory_mask = chunks(lambda steps, real: (linear(steps), real), x, mask)
    memory[memory_mask].square().sum().backward()
    assert memory[memory_mask].isfinite().all()
    assert linear.weight.grad.isfinite().all()


def test_one_chunk_is_the_encoder_on_the_whole() -> None:
    chunks, encoder = Chunks(10, 4, D_MODEL, _upper()), Local()
    x, mask = _padded([10, 7], 10)
    memory, memory_mask = chunks(encoder, x, mask)
    assert memory_mask.tolist() == [[True], [True]]
    whole = chunks.pooling(*encoder(x, mask))[:, None] + sinusoid(1, D_MODEL)
    torch.testing.assert_close(memory, chunks.upper(whole), **CLOSE)


def test_gradients_reach_encoder_and_upper() -> None:
    chunks, encoder = Chunks(4, 2, D_MODEL, _upper(), "attention"), Local()
    chunks(encoder, *_padded([11, 5], 11))[0].square().sum().backward()
    for module in (chunks, encoder):
        for name, parameter in module.named_parameters():
            if not name.endswith("key.bias"):  # which softmax does not see
                assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(("chunk", "stride"), [(4, 4), (4, 3), (5, 1), (30, 7)])
def test_every_real_step_has_its_say(chunk: int, stride: int) -> None:
    chunks, encoder = Chunks(chunk, stride, D_MODEL, _upper()), Local()
    x, mask = _padded([17, 6], 20)
    mask[0, 5:12] = False  # longer than a chunk, in between
    x = x.requires_grad_()
    memory, memory_mask = chunks(encoder, x, mask)
    (memory[memory_mask] * torch.randn(D_MODEL)).sum().backward()
    assert torch.equal(x.grad.abs().amax(-1) > 0, mask)


def test_the_order_of_chunks_matters() -> None:
    chunks, encoder = Chunks(4, 4, D_MODEL, _upper()), Local()
    x, mask = _padded([12], 12)
    swapped = torch.cat([x[:, 4:8], x[:, :4], x[:, 8:]], dim=1)
    last, other = (chunks(encoder, steps, mask)[0][:, -1] for steps in (x, swapped))
    assert (last - other).abs().max() > 1e-3


def test_an_example_without_a_step_is_masked_and_finite() -> None:
    chunks, encoder = Chunks(4, 2, D_MODEL, _upper()), Local()
    for lengths in ([0, 0], [0, 9]):
        memory, memory_mask = chunks(encoder, *_padded(lengths, 9))
        assert not memory_mask[0].any()
        assert memory.isfinite().all()
        memory.sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


def _kept(time: int) -> int:
    """Bytes that are kept for the backward pass over one example, all attention weights among them."""
    chunks, encoder = Chunks(64, 32, D_MODEL, _upper()), Local(attention_dropout=0.1)
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        memory, _ = chunks(encoder, *_padded([time], time))
    assert memory.shape == (1, 1 + math.ceil((time - 64) / 32), D_MODEL)
    return sum(kept.values())


def test_memory_grows_linearly_with_the_length() -> None:
    assert _kept(20_000) < 2.1 * _kept(10_000)


def test_a_stride_that_skips_steps_is_refused() -> None:
    for stride in (0, 5):
        with pytest.raises(ValueError, match=f"chunks of 4 steps need a stride from 1 to 4, not {stride}"):
            Chunks(4, stride, D_MODEL, _upper())

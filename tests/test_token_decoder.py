"""The decoder of tokens: what it is fed, what it may see and say, and that short cuts change nothing."""

import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.vocabulary import CLS, PAD, SEP, UNK
from tsformer.nn.layers import Decoder, LayerSpec
from tsformer.nn.positions import PositionKind, SinusoidalPositions, additive_positions
from tsformer.nn.token_decoder import TokenDecoder

BATCH, TOKENS, D, VOCABULARY, HORIZON = 3, 6, 16, 11, 5
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def made(kind: PositionKind = "sinusoidal", dropout: float = 0.0, **options: Any) -> TokenDecoder:
    layers = Decoder(2, LayerSpec(D, 4, 32, dropout, positions=kind))
    options = {"positions": additive_positions(kind, D, HORIZON), **options}
    decoder = TokenDecoder(layers, VOCABULARY, HORIZON, **options)
    with torch.no_grad():  # spread out, so that answers differ from row to row
        for parameter in layers.parameters():
            parameter.mul_(2.0)
    return decoder


def given(batch: int = BATCH) -> tuple[Tensor, Tensor, Tensor]:
    """memory, memory_mask, target_tokens"""
    mask = torch.arange(TOKENS)[None] >= torch.arange(batch)[:, None] % TOKENS
    tokens = torch.randint(SEP + 1, VOCABULARY, (batch, HORIZON))
    tokens[:, -1] = SEP
    return 3.0 * torch.randn(batch, TOKENS, D), mask, tokens


def fed(decoder: TokenDecoder) -> list[Tensor]:
    """Collects the tokens that the decoder embeds."""
    seen: list[Tensor] = []
    assert decoder.embedding is not None
    decoder.embedding.register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    return seen


def words_of(row: Tensor) -> list[int]:
    """Those before the end."""
    words = row.tolist()
    return words[: words.index(SEP)] if SEP in words else [word for word in words if word != PAD]


def test_it_is_fed_the_truth_a_step_later() -> None:
    decoder = made()
    seen = fed(decoder)
    memory, mask, _ = given(1)
    decoder(memory, mask, torch.tensor([[7, 8, 9, SEP]]), 1.0)
    assert [tokens.tolist() for tokens in seen] == [[[CLS, 7, 8, 9]]]


def test_embeddings_have_the_scale_of_vaswani() -> None:
    decoder = TokenDecoder(Decoder(1, LayerSpec(64, 4, 64)), 500, HORIZON)
    assert decoder.embedding is not None
    assert float(decoder.embedding.weight.detach().std()) == pytest.approx(64**-0.5, rel=0.02)
    taken: list[Tensor] = []
    decoder.layers.register_forward_pre_hook(lambda _, args: taken.append(args[0]))
    decoder(torch.zeros(1, 2, 64), torch.ones(1, 2, dtype=torch.bool), torch.tensor([[9, 30, SEP]]), 1.0)
    rows = decoder.embedding.weight[[CLS, 9, 30]][None] * 8.0  # sqrt(64)
    torch.testing.assert_close(taken[0], SinusoidalPositions(64)(rows))


@pytest.mark.parametrize("step", range(HORIZON))
def test_no_step_sees_its_own_token_or_a_later_one(step: int) -> None:
    decoder = made()
    memory, mask, tokens = given()
    before = decoder(memory, mask, tokens, 1.0)
    tokens[:, step:] = SEP + 1 + (tokens[:, step:] - SEP) % (VOCABULARY - SEP - 1)
    changed = (decoder(memory, mask, tokens, 1.0) - before).abs().amax((0, 2)) > 1e-6
    assert changed.tolist() == [later > step for later in range(HORIZON)]


@pytest.mark.parametrize("truth", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sampling", ["steps", "two_pass"])
def test_gradients_reach_everything_and_only_what_is_real(truth: float, sampling: str) -> None:
    decoder = made(sampling=sampling)
    memory, mask, tokens = given()
    memory.requires_grad_()
    logits = decoder(memory, mask, tokens, truth)
    assert logits.shape == (BATCH, HORIZON, VOCABULARY)
    logits.square().sum().backward()
    for parameter in decoder.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
    assert memory.grad is not None
    assert torch.equal(memory.grad.abs().sum(-1) > 0, mask)


def test_a_free_run_is_fed_its_own_tokens() -> None:
    decoder = made().train()
    memory, mask, _ = given()
    seen = fed(decoder)
    logits = decoder(memory, mask)  # a rollout, and one pass with gradients over what it found
    own = logits.detach().clone()
    own[..., [PAD, UNK, CLS]] = -math.inf
    assert torch.equal(seen[-1], torch.cat([torch.full((BATCH, 1), CLS), own.argmax(-1)[:, :-1]], dim=1))
    torch.testing.assert_close(logits, decoder(memory, mask, own.argmax(-1), 1.0), **CLOSE)


def test_a_free_run_gives_an_answer_with_its_end_and_nothing_after_it() -> None:
    decoder = made().eval()
    memory, mask, tokens = given(40)
    logits = decoder(memory, mask)
    assert logits.shape == (40, HORIZON, VOCABULARY)
    assert logits.isfinite().all()
    answers = logits.argmax(-1)
    ends = answers == SEP
    assert 5 < int(ends.any(1).sum()) < 40
    after = (ends.cumsum(1) - ends.long()) > 0
    assert torch.equal(answers == PAD, after)
    assert not torch.isin(answers, torch.tensor([UNK, CLS])).any()
    with torch.no_grad():
        torch.testing.assert_close(decoder(memory, mask), logits, **CLOSE)
    assert torch.equal(decoder(memory, mask, tokens, 0.0), logits)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "relative", "rotary", "none"])
def test_the_cache_changes_nothing(kind: PositionKind) -> None:
    decoder = made(kind).eval()
    memory, mask, _ = given(20)
    expected, answers = decoder(memory, mask), [decoder.generate(memory, mask, beam) for beam in (1, 3)]
    decoder.cache = False
    torch.testing.assert_close(decoder(memory, mask), expected, **CLOSE)
    for beam, answer in zip((1, 3), answers, strict=True):
        again = decoder.generate(memory, mask, beam)
        assert torch.equal(again.tokens, answer.tokens)
        torch.testing.assert_close(again.scores, answer.scores, **CLOSE)


def test_generate_with_one_beam_is_the_free_run() -> None:
    decoder = made().eval()
    memory, mask, _ = given(40)
    with torch.no_grad():
        logits = decoder(memory, mask)
    answers = decoder.generate(memory, mask)
    free = logits.argmax(-1)
    assert [words_of(row) for row in answers.tokens] == [words_of(row) for row in free]
    said = logits.log_softmax(-1).gather(-1, free[..., None])[..., 0]  # 0 for what follows the end
    torch.testing.assert_close(answers.scores, said.sum(1), **CLOSE)


def test_scores_are_those_of_teacher_forcing() -> None:
    decoder = made().eval()
    memory, mask, _ = given(20)
    answers = decoder.generate(memory, mask, beam=4, length_penalty=0.6)
    for row, words in enumerate(map(words_of, answers.tokens)):
        tokens = torch.tensor([[*words, SEP][:HORIZON]])
        logits = decoder(memory[row : row + 1], mask[row : row + 1], tokens, 1.0).detach()
        logits[..., [PAD, UNK, CLS]] = -math.inf
        total = -F.cross_entropy(logits[0], tokens[0], reduction="sum")
        assert float(answers.scores[row]) == pytest.approx(float(total), abs=1e-4)


def test_a_wide_beam_finds_the_best_of_all_answers() -> None:
    decoder = made().eval()
    memory, mask, _ = given(6)
    words = range(SEP + 1, VOCABULARY)
    every = [(*said, SEP) for length in range(4) for said in itertools.product(words, repeat=length)]
    tokens = torch.tensor([[*said, *[PAD] * (4 - len(said))] for said in every])
    real, lengths = tokens != PAD, torch.tensor([len(said) for said in every])
    answers = decoder.generate(memory, mask, beam=500, most=4, length_penalty=0.6)
    for row in range(6):
        with torch.no_grad():
            logits = decoder(memory[[row] * len(every)], mask[[row] * len(every)], tokens, 1.0)
        logits[..., [PAD, UNK, CLS]] = -math.inf
        steps = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        totals = torch.where(real, steps, 0.0).sum(1)
        best = int((totals / ((5 + lengths) / 6) ** 0.6).argmax())
        assert [*words_of(answers.tokens[row]), SEP] == [*every[best]]
        assert float(answers.scores[row]) == pytest.approx(float(totals[best]), abs=1e-4)


@pytest.mark.parametrize("beam", [1, 3])
def test_neither_batch_mates_nor_padding_change_an_answer(beam: int) -> None:
    decoder = made().eval()
    memory, mask, _ = given(12)
    dirty = torch.where(mask[..., None], memory, math.nan)
    whole = decoder.generate(dirty, mask, beam)
    for row in range(12):
        real = mask[row]
        alone = decoder.generate(memory[row : row + 1, real], real[None, real], beam)
        assert words_of(alone.tokens[0]) == words_of(whole.tokens[row])
        torch.testing.assert_close(alone.scores[0], whole.scores[row], **CLOSE)


def test_answers_may_be_longer_or_shorter_than_trained_ones() -> None:
    decoder = made().eval()
    with torch.no_grad():
        decoder.head.bias[SEP] = -50.0
    memory, mask, _ = given()
    assert decoder.generate(memory, mask).tokens.shape == (BATCH, HORIZON)
    assert decoder.generate(memory, mask, beam=2, most=2 * HORIZON).tokens.shape == (BATCH, 2 * HORIZON)
    assert decoder.generate(memory, mask, most=2).tokens.shape == (BATCH, 2)


def test_coins_mix_truth_and_own_tokens() -> None:
    decoder = made().train()
    memory, mask, tokens = given(200)
    seen = fed(decoder)
    logits = decoder(memory, mask, tokens, 0.7)
    inputs, own = seen[-1][:, 1:], logits.detach().clone()
    own[..., [PAD, UNK, CLS]] = -math.inf
    own_tokens, true = own.argmax(-1)[:, :-1], tokens[:, :-1]
    assert ((inputs == true) | (inputs == own_tokens)).all()
    differ = true != own_tokens
    assert float((inputs == true)[differ].double().mean()) == pytest.approx(0.7, abs=0.07)
    assert (seen[-1][:, 0] == CLS).all()


def test_two_passes_take_own_tokens_from_the_true_past() -> None:
    decoder = made(sampling="two_pass").train()
    memory, mask, tokens = given(50)
    seen = fed(decoder)
    first = decoder(memory, mask, tokens, 1.0).detach()
    first[..., [PAD, UNK, CLS]] = -math.inf
    seen.clear()
    decoder(memory, mask, tokens, 0.5)
    assert len(seen) == 2  # two parallel passes, and no rollout
    inputs, true, own = seen[1][:, 1:], tokens[:, :-1], first.argmax(-1)[:, :-1]
    assert ((inputs == true) | (inputs == own)).all()
    assert (inputs != true).any()


class TestTied:
    def test_the_table_is_fed_and_predicts(self) -> None:
        decoder, table = made(tie_embeddings=True), torch.randn(VOCABULARY, D) * D**-0.5
        own = made()
        own.load_state_dict(
            {
                **{name: value for name, value in decoder.state_dict().items() if name != "bias"},
                "embedding.weight": table,
                "head.weight": table,
                "head.bias": decoder.bias,
            }
        )
        memory, mask, tokens = given()
        for truth in (0.0, 1.0):
            torch.testing.assert_close(
                decoder(memory, mask, tokens, truth, table=table), own(memory, mask, tokens, truth), **CLOSE
            )
        answers, expected = decoder.generate(memory, mask, 3, table=table), own.generate(memory, mask, 3)
        assert torch.equal(answers.tokens, expected.tokens)

    def test_the_state_holds_no_table_and_gradients_reach_it(self) -> None:
        decoder, table = made(tie_embeddings=True), torch.randn(VOCABULARY, D, requires_grad=True)
        assert not any(VOCABULARY in value.shape and D in value.shape for value in decoder.state_dict().values())
        memory, mask, tokens = given()
        decoder(memory, mask, tokens, 1.0, table=table).logsumexp(-1).sum().backward()
        assert table.grad is not None
        assert (table.grad.abs().sum(1) > 0).all()

    def test_the_table_is_needed_where_it_is_tied_and_only_there(self) -> None:
        memory, mask, tokens = given()
        with pytest.raises(ValueError, match="table"):
            made(tie_embeddings=True)(memory, mask, tokens, 1.0)
        with pytest.raises(ValueError, match="table"):
            made()(memory, mask, tokens, 1.0, table=torch.zeros(VOCABULARY, D))


@pytest.mark.parametrize("truth", [-0.1, 1.1])
def test_truth_is_a_probability(truth: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        made()(*given(), truth)


def test_truth_needs_target_tokens() -> None:
    memory, mask, _ = given()
    with pytest.raises(ValueError, match="target_tokens"):
        made()(memory, mask, None, 0.5)

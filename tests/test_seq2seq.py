"""Sequences to sequences: what is seen of the truth, and that what is said has the probability that is said."""

from dataclasses import replace

import pytest
import torch

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.vocabulary import CLS, PAD, SEP, UNK
from tsformer.data.windows import Batch
from tsformer.nn.token_output import TokenOutput
from tsformer.plugin import Problem, Task

LAYERS = {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1}
STATES = {"d_model": 8, "decoder_layers": 1}
MODELS = {
    "transformer": LAYERS,
    "tcn_transformer": {**LAYERS, "tcn_layers": 1, "stride": 2},
    "lstm": {**STATES, "n_layers": 1},
    "tcn": STATES,
}
PROBLEM = Problem(task=Task.SEQUENCE, lookback=6, horizon=5, vocabulary=9, target_vocabulary=9, output="tokens")
TOKENS = torch.tensor([[4, 5, 6, 7, 8, 4], [5, 6, 7, PAD, PAD, PAD], [PAD] * 6])
TARGETS = torch.tensor([[4, 8, 7, SEP], [5, SEP, PAD, PAD], [SEP, PAD, PAD, PAD]])
BATCH = Batch(tokens=TOKENS, token_mask=TOKENS != PAD, target_tokens=TARGETS, target_token_mask=TARGETS != PAD)


def built(model, **options):
    torch.manual_seed(0)
    values = {"model": {"name": model, **MODELS[model], **options}, "task": "sequence"}
    chosen = resolve([Layer(values)], needs_data=False)
    return chosen.model.plugin.build(chosen.model.config, PROBLEM).eval()


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_the_truth_is_seen_before_each_token_only(model, tie):
    module = built(model, tie_embeddings=tie)
    logits = module(BATCH, truth=1.0)
    assert logits.shape == (3, 4, 9)
    for step in range(4):
        targets = TARGETS.clone()
        targets[0, step:] = 6
        other = module(replace(BATCH, target_tokens=targets), truth=1.0)
        torch.testing.assert_close(other[:, : step + 1], logits[:, : step + 1], rtol=1e-5, atol=1e-6)
        if step < 3:
            assert not torch.allclose(other[0, step + 1], logits[0, step + 1], atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_a_free_run_sees_no_truth(model):
    module = built(model)
    bare = replace(BATCH, target_tokens=None, target_token_mask=None)
    free = module(bare)
    assert torch.equal(module(BATCH), free)
    spoilt = replace(BATCH, target_tokens=TARGETS.flip(0))
    assert module.answer(spoilt).tokens.tolist() == module.answer(bare).tokens.tolist()


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("model", MODELS)
def test_an_answer_is_as_probable_as_it_is_said_to_be(model, beam):
    """By teacher forcing: the sum of the logarithms of the probabilities of its tokens and its end."""
    module = built(model, tie_embeddings=True)
    answers = module.answer(BATCH, beam=beam)
    for i in range(3):
        words = [token for token in answers.tokens[i].tolist() if token != PAD]
        assert not {UNK, CLS, SEP} & set(words)
        ended = [*words, SEP][: PROBLEM.horizon]
        one = Batch(tokens=TOKENS[i : i + 1], token_mask=TOKENS[i : i + 1] != PAD, target_tokens=torch.tensor([ended]))
        logits = module(one, truth=1.0)[0]
        logits[:, [PAD, UNK, CLS]] = -torch.inf
        expected = sum(logits[k].log_softmax(-1)[token].item() for k, token in enumerate(ended))
        assert float(answers.scores[i]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_padding_changes_nothing(model):
    module = built(model)
    wide = torch.nn.functional.pad(TOKENS, (0, 5))
    padded = replace(BATCH, tokens=torch.where(wide != PAD, wide, 8), token_mask=wide != PAD)
    torch.testing.assert_close(module(padded, truth=1.0), module(BATCH, truth=1.0), rtol=1e-4, atol=1e-5)
    assert module.answer(padded).tokens.tolist() == module.answer(BATCH).tokens.tolist()


def test_one_table_of_words():
    tied, own = built("transformer", tie_embeddings=True), built("transformer")
    tables = [name for name, weight in tied.named_parameters() if weight.shape == (9, 8)]
    assert tables == ["inputs.tokens.weight"]
    assert len([name for name, weight in own.named_parameters() if weight.shape == (9, 8)]) == 3


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_gradients_reach_everything(model, tie):
    module = built(model, tie_embeddings=tie).train()
    TokenOutput().loss(module(BATCH, truth=1.0), BATCH).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name

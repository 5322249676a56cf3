"""Beam search for the most probable answer (Sutskever et al. 2014, section 3.2), for a whole batch at a time."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from tsformer.data.vocabulary import CLS, PAD, SEP, UNK


class Continuation(Protocol):
    """Answers that grow by one token at a time, at first one to each example."""

    def logits(self, newest: Tensor) -> Tensor:
        """Take the newest token of each answer, int64 `[rows]`, to the logits of the next one `[rows, vocabulary]`."""
        ...

    def take(self, rows: Tensor) -> None:
        """Go on with those answers, int64 `[rows]`, in this order, one of them perhaps several times."""
        ...


def beam_search(
    answers: Continuation, batch: int, beam: int, most: int, length_penalty: float, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The best answer that is found to each example.

    At each step the best `beam` continuations are kept. One that ends is set apart and leaves its place in the beam
    empty, so that a beam of 1 takes the most probable word each time. The search ends when every place is empty, or
    nothing that still grows can become better. Answers are compared by their log-probability, divided by
    ((5 + tokens) / 6) ^ length_penalty (Wu et al. 2016, equation 14), their end counted as a token. One that is cut off
    after `most` tokens is taken only where none has ended.

    Args:
        answers: of no token yet, `batch` of them.
        batch: number of examples.
        beam: how many answers to each are followed at a time.
        most: tokens of an answer at most, its end included.
        length_penalty: 0 prefers short answers, for each token costs; larger ones prefer long answers.
        device: of the logits.

    Returns:
        tokens: int64 `[batch, longest answer]`, padded on the right, without their ends.
        scores: `[batch]`, log-probabilities, those of the ends included.

    Raises:
        ValueError: when beam or most is below 1, or length_penalty outside [0, 10].
    """
    if beam < 1 or most < 1:
        raise ValueError(f"beam {beam} and most {most} must be at least 1")
    if not 0.0 <= length_penalty <= 10.0:
        raise ValueError(f"length_penalty must be in [0, 10], not {length_penalty}")
    tokens = torch.full((batch, 1, most), PAD, device=device)  # [batch, places, most]; at first there is one place
    scores = torch.zeros(batch, 1, device=device)  # of what grows; minus infinity: an empty place
    newest = torch.full((batch,), CLS, device=device)
    free = torch.full((batch, 1), beam, device=device)  # places that no answer has ended in
    best = _Best(tokens[:, 0], scores[:, 0])

    for length in range(1, most + 1):
        steps = possible(answers.logits(newest).float()).log_softmax(-1)
        places, words = scores.shape[1], steps.shape[-1]
        candidates = (scores[..., None] + steps.view(batch, places, words)).flatten(1)
        scores, index = candidates.topk(min(beam, places * words))
        parents, newest = index // words, index % words
        tokens = tokens.gather(1, parents[..., None].expand(-1, -1, most))
        scores = scores.masked_fill(torch.arange(scores.shape[1], device=device) >= free, -math.inf)

        ended = (newest == SEP) & (scores > -math.inf)
        best.offer(tokens, scores.masked_fill(~ended, -math.inf), _penalty(length, length_penalty))
        free = free - ended.sum(1, keepdim=True)
        # No further token adds to a log-probability, and none is divided by more than the longest one.
        hopeless = scores / _penalty(most, length_penalty) <= best.merit[:, None]
        scores = scores.masked_fill(ended | hopeless, -math.inf)
        tokens[..., length - 1] = newest
        if length == most or bool((scores == -math.inf).all()):
            break
        answers.take((parents + torch.arange(batch, device=device)[:, None] * places).flatten())
        newest = newest.flatten()

    cut = best.merit == -math.inf
    tokens = torch.where(cut[:, None], tokens[:, 0], best.tokens)
    longest = int((tokens != PAD).sum(1).max()) if batch else 0
    return tokens[:, :longest], torch.where(cut, scores[:, 0], best.scores)


def possible(logits: Tensor) -> Tensor:
    """Logits `[..., vocabulary]` with minus infinity for `[PAD]`, `[UNK]` and `[CLS]`, which are no answer."""
    return logits.index_fill(-1, torch.tensor([PAD, UNK, CLS], device=logits.device), -math.inf)


class _Best:
    """The best answers that have ended, one to each example; of merit minus infinity while there is none."""

    def __init__(self, tokens: Tensor, scores: Tensor) -> None:
        self.tokens = tokens  # [batch, most]
        self.scores = scores  # [batch]
        self.merit = torch.full_like(scores, -math.inf)

    def offer(self, tokens: Tensor, scores: Tensor, penalty: float) -> None:
        """Of `[batch, beam, most]` and `[batch, beam]`, take what is better."""
        score, place = scores.max(1)
        better = score / penalty > self.merit
        chosen = tokens[torch.arange(len(tokens), device=tokens.device), place]
        self.tokens = torch.where(better[:, None], chosen, self.tokens)
        self.scores = torch.where(better, score, self.scores)
        self.merit = torch.where(better, score / penalty, self.merit)


def _penalty(tokens: int, length_penalty: float) -> float:
    return ((5 + tokens) / 6) ** length_penalty

"""From memory to an answer, token by token (Vaswani et al. 2017, sections 3.1 and 3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.vocabulary import CLS, PAD, SEP
from tsformer.nn.beam import beam_search, possible
from tsformer.nn.decoders import Sampling
from tsformer.nn.layers import Decoder, LayerCache
from tsformer.nn.positions import SinusoidalPositions

IMPOSSIBLE = -1e4
"""Logit of a word that cannot come next: its probability is 0, and yet every loss is finite."""


@dataclass(frozen=True)
class Answers:
    """What was written.

    Attributes:
        tokens: int64 `[batch, longest answer]`, padded on the right; neither begin nor end is among them.
        scores: `[batch]`, log-probability of each answer, its end included.
    """

    tokens: Tensor
    scores: Tensor


class TokenDecoder(nn.Module):
    """One token after the other, fed `[CLS]` and all tokens before.

    As in `AutoregressiveDecoder`, all steps are one parallel pass with `truth` = 1, the decoder is fed its own tokens
    with `truth` = 0, and a coin decides in between, whose inputs are found exactly ("steps") or by a pass over the
    truth ("two_pass"). Its own token is the most probable one, but never `[PAD]`, `[UNK]` or `[CLS]`, which are no
    answer. In training they stay possible to the loss, and an answer that ended goes on, so that every step of the
    truth has logits.

    Weights do not depend on the horizon.

    Args:
        layers: the stack.
        vocabulary: words that a token may be, the special ones included.
        horizon: tokens of the longest answer, its end included.
        positions: `positions(x, mask=None, offset=0)` adds the place of each token; sinusoidal when None.
        tie_embeddings: what words are embedded by is also what predicts them (Press & Wolf 2017), but for a bias. The
            table is then not the decoder's own but passed to each call, so that an encoder can embed by it as well, and
            a state dict holds it once.
        sampling: how inputs are found between 0 and 1, "steps" or "two_pass".
        cache: keep keys and values between the steps of a rollout: the same result, much faster.
    """

    def __init__(
        self,
        layers: Decoder,
        vocabulary: int,
        horizon: int,
        positions: nn.Module | None = None,
        tie_embeddings: bool = False,
        sampling: Sampling = "steps",
        cache: bool = True,
    ) -> None:
        super().__init__()
        self.layers = layers
        self.vocabulary = vocabulary
        self.horizon = horizon
        self.sampling = sampling
        self.cache = cache
        self.positions = SinusoidalPositions(layers.d_model) if positions is None else positions
        self.embedding = None if tie_embeddings else nn.Embedding(vocabulary, layers.d_model)
        if self.embedding is not None:
            nn.init.normal_(self.embedding.weight, std=layers.d_model**-0.5)
            self.head = nn.Linear(layers.d_model, vocabulary)
        else:
            self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        target_tokens: Tensor | None = None,
        truth: float = 0.0,
        *,
        table: Tensor | None = None,
    ) -> Tensor:
        """Logits of each token of the answer.

        Args:
            memory: `[batch, tokens, d_model]`.
            memory_mask: boolean `[batch, tokens]`, True = real.
            target_tokens: int64 `[batch, length]`, the true answer with its end; read only when `truth` is above 0.
            truth: probability that the true previous token is fed.
            table: `[vocabulary, d_model]`, the embeddings that are tied; None without `tie_embeddings`.

        Returns:
            `[batch, length, vocabulary]`; `[batch, horizon, vocabulary]` when `truth` is 0. Outside of training the
            highest logits are then an answer: its words, its end, and `[PAD]` after it.

        Raises:
            ValueError: when `truth` is outside [0, 1], or above 0 without target tokens.
        """
        if not 0.0 <= truth <= 1.0:
            raise ValueError(f"truth is a probability, not {truth}")
        if truth == 0.0:
            with torch.no_grad():
                own, logits = self._rollout(memory, memory_mask, table)
            if torch.is_grad_enabled():
                logits = self._steps(_shifted(own), memory, memory_mask, table)
            return logits if self.training else _as_answer(logits, own)
        if target_tokens is None:
            raise ValueError(f"truth {truth} needs target_tokens")
        if truth == 1.0:
            return self._steps(_shifted(target_tokens), memory, memory_mask, table)
        coins = torch.rand(target_tokens.shape, device=target_tokens.device) < truth
        with torch.no_grad():
            if self.training and self.sampling == "two_pass":
                own = _likeliest(self._steps(_shifted(target_tokens), memory, memory_mask, table))
                fed = torch.where(coins, target_tokens, own)
            else:
                fed, _ = self._rollout(memory, memory_mask, table, target_tokens, coins)
        return self._steps(_shifted(fed), memory, memory_mask, table)

    @torch.no_grad()
    def generate(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        beam: int = 1,
        most: int | None = None,
        length_penalty: float = 1.0,
        *,
        table: Tensor | None = None,
    ) -> Answers:
        """The best answers that are found.

        Args:
            memory, memory_mask, table: as in `forward`.
            beam: how many answers are followed at a time; 1 takes the most probable token each time.
            most: tokens of an answer at most, its end included; the horizon when None.
            length_penalty: see `beam_search`.

        Raises:
            ValueError: for numbers that `beam_search` refuses.
        """
        most = self.horizon if most is None else most
        answers = _Growing(self, memory, memory_mask, table)
        return Answers(*beam_search(answers, len(memory), beam, most, length_penalty, memory.device))

    def _rollout(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        table: Tensor | None,
        target_tokens: Tensor | None = None,
        coins: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """What it was fed after each step, `[batch, steps]`, and the logits from which its own tokens came.

        Without coins these are its own tokens; outside of training they end, and are `[PAD]` after the end.
        """
        answers = _Growing(self, memory, memory_mask, table)
        newest = torch.full((len(memory),), CLS, device=memory.device)
        ended = torch.zeros_like(newest, dtype=torch.bool)
        fed: list[Tensor] = []
        logits: list[Tensor] = []
        for step in range(self.horizon if target_tokens is None else target_tokens.shape[1]):
            if not self.training and coins is None and bool(ended.all()):  # the same for all steps to come
                fed.append(torch.full_like(newest, PAD))
                logits.append(logits[-1])
                continue
            logits.append(answers.logits(newest))
            newest = _likeliest(logits[-1])
            if coins is not None and target_tokens is not None:
                newest = torch.where(coins[:, step], target_tokens[:, step], newest)
            elif not self.training:
                newest = newest.masked_fill(ended, PAD)
                ended = ended | (newest == SEP)
            fed.append(newest)
        return torch.stack(fed, dim=1), torch.stack(logits, dim=1)

    def _steps(
        self,
        tokens: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        table: Tensor | None,
        caches: list[LayerCache] | None = None,
        offset: int = 0,
    ) -> Tensor:
        """Tokens `[batch, steps]` to the logits of those after them."""
        if self.embedding is not None and table is None:
            embedded = self.embedding(tokens)
        elif self.embedding is None and table is not None:
            embedded = F.embedding(tokens, table)
        else:
            raise ValueError("a table of embeddings is for tie_embeddings, and needed there")
        x = self.positions(embedded * math.sqrt(self.layers.d_model), offset=offset)
        y: Tensor = self.layers(x, memory, memory_mask, causal=True, caches=caches)
        return self.head(y) if table is None else F.linear(y, table, self.bias)


class _Growing:
    """Answers of a decoder, at first one to each row of the memory: a `Continuation`."""

    def __init__(self, decoder: TokenDecoder, memory: Tensor, memory_mask: Tensor, table: Tensor | None) -> None:
        self.decoder = decoder
        self.memory, self.memory_mask, self.table = memory, memory_mask, table
        self.caches = decoder.layers.caches() if decoder.cache else None
        self.tokens = torch.empty(len(memory), 0, dtype=torch.long, device=memory.device)

    def logits(self, newest: Tensor) -> Tensor:
        """Newest tokens `[rows]` to the logits of the next ones, `[rows, vocabulary]`."""
        self.tokens = torch.cat([self.tokens, newest[:, None]], dim=1)
        offset = 0 if self.caches is None else self.tokens.shape[1] - 1
        fed = self.tokens[:, offset:]
        return self.decoder._steps(fed, self.memory, self.memory_mask, self.table, self.caches, offset)[:, -1]

    def take(self, rows: Tensor) -> None:
        """Go on with those; while their number stays, each place stays with the same example and so its memory."""
        moved = len(rows) != len(self.tokens)
        self.tokens = self.tokens[rows]
        if moved:
            self.memory, self.memory_mask = self.memory[rows], self.memory_mask[rows]
        for cache in self.caches or ():
            cache.past.take(rows)
            if moved:
                cache.memory.take(rows)


def _shifted(tokens: Tensor) -> Tensor:
    """What is fed when these tokens are the answer: each comes a step later, after `[CLS]`."""
    return torch.cat([torch.full_like(tokens[:, :1], CLS), tokens[:, :-1]], dim=1)


def _likeliest(logits: Tensor) -> Tensor:
    """`[..., vocabulary]` to tokens `[...]`."""
    return possible(logits).argmax(-1)


def _as_answer(logits: Tensor, tokens: Tensor) -> Tensor:
    """Logits `[batch, steps, vocabulary]` that let nothing but `[PAD]` follow the end of `tokens` `[batch, steps]`."""
    nothing = torch.full_like(logits[0, 0], IMPOSSIBLE)
    nothing[PAD] = 0.0
    return torch.where((tokens == PAD)[..., None], nothing, possible(logits)).clamp_min(IMPOSSIBLE)

"""What a batch holds, as one vector for each step: numbers, tokens, or numbers with a text at each step."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tsformer.data.vocabulary import CLS, PAD
from tsformer.data.windows import Batch
from tsformer.plugin import Problem, Task

TEXT_WIDTH = 32
"""Features of a text beside numbers, at most: texts of a table are short, and its rows are few."""


class Inputs(nn.Module):
    """Vectors for an encoder, padded on the left whatever the batch was.

    Numbers are taken as they are, zero where they are missing, and bring their own normalisation: a scaler, or RevIN.
    Tokens are embedded and scaled to unit variance (Vaswani et al. 2017, section 3.4). A text at a step is the mean of
    its tokens, normalised by itself and put beside the step's numbers; each of the two modalities has a vector of its
    own, added where there is something, so that an encoder can tell what is missing from what is average.

    Args:
        problem: tells numbers from tokens.
        d_model: width of tokens.
        summary: append a step that is always real and in which an encoder can sum up all others, even one that looks
            back only: the embedding of `[CLS]`, or a learned vector.

    Attributes:
        width: channels of what comes out, which an encoder is built for.
        text_width: those of them that are of a text beside numbers, the last ones; 0 when there is none.
    """

    def __init__(self, problem: Problem, d_model: int, summary: bool = False) -> None:
        super().__init__()
        self.of_tokens = problem.vocabulary > 0 and problem.channels == 0
        self.text_width = min(d_model, TEXT_WIDTH) if problem.channels and problem.text_length else 0
        self.width = d_model if self.of_tokens else problem.channels + self.text_width
        self.summary = summary
        if self.of_tokens or self.text_width:
            self.tokens = nn.Embedding(problem.vocabulary, self.text_width or d_model)
            nn.init.normal_(self.tokens.weight, std=self.tokens.embedding_dim**-0.5)
        if self.text_width:
            self.text_norm = nn.LayerNorm(self.text_width)
            self.text_modality = nn.Parameter(torch.zeros(self.text_width))
            if problem.task is not Task.FORECAST:  # whose numbers pass through RevIN, by another way
                self.numbers_modality = nn.Parameter(torch.zeros(problem.channels))
        if summary and not self.of_tokens:
            self.summary_step = nn.Parameter(torch.randn(self.width))
        if problem.task is Task.PRETRAIN:
            # Among numbers what is hidden begins as their mean (Zerveas et al. 2021), among tokens as one more of them.
            self.hidden_step = nn.Parameter(torch.randn(self.width) if self.of_tokens else torch.zeros(self.width))

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """`[batch, time, width]`, and the steps that are real, boolean `[batch, time]`; the summary is the last one."""
        x, mask, hidden = self._tokens(batch) if self.of_tokens else self._numbers(batch)
        if hidden is not None:
            x = torch.where((hidden & mask)[..., None], self.hidden_step, x)
        if not self.summary:
            return x, mask
        step = self._embed(mask.new_full((1,), CLS, dtype=torch.long))[0] if self.of_tokens else self.summary_step
        x = torch.cat([x, step.to(x.dtype).expand(len(x), 1, -1)], dim=1)
        return x, torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)

    def text_features(self, batch: Batch) -> Tensor | None:
        """The text at each step, `[batch, time, text_width]`, zero where there is none; None for a problem without.

        To forecasts it is one more set of covariates of the past, beside numbers that RevIN has normalised.
        """
        if not self.text_width:
            return None
        if batch.tokens is None or batch.token_mask is None:
            raise ValueError("a batch with a text at each step needs tokens and token_mask")
        mask = batch.token_mask  # [batch, time, length]
        share = mask / mask.sum(-1, keepdim=True).clamp_min(1)
        embedded = self._embed(torch.where(mask, batch.tokens, PAD))
        mean = torch.einsum("btl,btld->btd", share.to(embedded.dtype), embedded)
        return torch.where(mask.any(-1, keepdim=True), self.text_norm(mean) + self.text_modality, 0.0)

    def _embed(self, tokens: Tensor) -> Tensor:
        embedded: Tensor = self.tokens(tokens)
        return embedded * math.sqrt(self.tokens.embedding_dim)

    def _numbers(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None]:
        mask, there = batch.past_mask, batch.past_mask.any(-1)
        x = torch.where(mask, batch.past, 0.0)  # first of all: a NaN behind the mask would reach gradients
        text = self.text_features(batch)
        if text is not None and batch.token_mask is not None:
            x = torch.cat([torch.where(mask, x + self.numbers_modality, 0.0), text], dim=-1)
            there = there | batch.token_mask.any(-1)
        return x, there, batch.hidden

    def _tokens(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor | None]:
        """Tokens `[batch, length]`, moved to the right, so that the last one is the last step."""
        if batch.tokens is None or batch.token_mask is None:
            raise ValueError("a batch of tokens needs tokens and token_mask")
        length = batch.tokens.shape[1]
        step = torch.arange(length, device=batch.tokens.device)
        source = step - (length - batch.token_mask.sum(1, keepdim=True))  # [batch, length], below 0: padding
        mask = source >= 0
        source = source.clamp_min(0)
        tokens = torch.where(mask, batch.tokens.gather(1, source), PAD)
        hidden = None if batch.hidden is None else batch.hidden.gather(1, source)
        return torch.where(mask[..., None], self._embed(tokens), 0.0), mask, hidden

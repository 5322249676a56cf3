"""How a model that answers one sequence of tokens by another is put together (Sutskever et al. 2014)."""

from __future__ import annotations

from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.inputs import Inputs
from tsformer.nn.reader import Reader
from tsformer.nn.token_decoder import Answers, TokenDecoder


class SequenceToSequence(Reader):
    """Reads a sequence and writes another, token by token.

    Args:
        inputs, encoder: see `Reader`.
        decoder: writes; it may use the table of the input's embedding as its own.
        tie_embeddings: the decoder takes the input's table.
    """

    def __init__(self, inputs: Inputs, encoder: nn.Module, decoder: TokenDecoder, tie_embeddings: bool) -> None:
        super().__init__(inputs, encoder)
        self.decoder = decoder
        self.tie_embeddings = tie_embeddings

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """Logits `[batch, target_length, vocabulary]`; `batch.target_tokens` are read only when `truth` is above 0."""
        memory, mask = self.read(batch)
        target = batch.target_tokens if truth > 0.0 else None
        logits: Tensor = self.decoder(memory, mask, target, truth, table=self._table())
        return logits

    def answer(self, batch: Batch, beam: int = 1, length_penalty: float = 1.0) -> Answers:
        """The best answers that are found, without their ends; `beam` candidates are followed at a time."""
        memory, mask = self.read(batch)
        return self.decoder.generate(memory, mask, beam=beam, length_penalty=length_penalty, table=self._table())

    def _table(self) -> Tensor | None:
        return self.inputs.tokens.weight if self.tie_embeddings else None

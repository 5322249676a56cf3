"""How a classifier is put together: whatever reads, and a head."""

from __future__ import annotations

from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.chunks import Chunks
from tsformer.nn.classification import ClassificationHead
from tsformer.nn.inputs import Inputs
from tsformer.nn.normalisation import RevIN
from tsformer.nn.reader import Reader


class Classifier(Reader):
    """Reads a sequence and says how likely each class is.

    Args:
        inputs, encoder, revin, chunks: see `Reader`.
        head: pools the memory.
    """

    def __init__(
        self,
        inputs: Inputs,
        encoder: nn.Module,
        head: ClassificationHead,
        revin: RevIN | None = None,
        chunks: Chunks | None = None,
    ) -> None:
        super().__init__(inputs, encoder, revin, chunks)
        self.head = head

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """Logits `[batch, classes]`; `truth` is ignored, for nothing is fed back."""
        logits: Tensor = self.head(*self.read(batch))
        return logits

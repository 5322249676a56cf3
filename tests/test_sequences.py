"""Examples as data plugins give them: what cannot be is refused where it is made."""

import numpy as np
import pytest

from tsformer.data.ragged import Ragged
from tsformer.data.sequences import Sequences, SequenceSchema

SCHEMA = SequenceSchema(text="text", label="label", target="target")
WHOLE = {"schema": SCHEMA, "ids": ("1", "2"), "texts": ("a", ""), "labels": ("x", "y"), "targets": ("b", "c")}


def test_what_fits_together():
    assert len(Sequences(**WHOLE, parts=np.array([0, 2], dtype=np.int8))) == 2


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"texts": (b"a", "b")}, TypeError, "texts holds b'a'"),
        ({"texts": (None, "b")}, TypeError, "texts holds None"),
        ({"labels": (1, 2)}, TypeError, "labels holds 1"),
        ({"labels": ("x", None)}, TypeError, "labels holds None"),
        ({"targets": (None, "c")}, TypeError, "targets holds None"),
        ({"ids": (1, 2)}, TypeError, "ids holds 1"),
        ({"ids": ("1", "1")}, ValueError, "'1' twice"),
        ({"parts": np.array([0.0, 1.0])}, TypeError, "int8"),
        ({"parts": np.array([0, 9], dtype=np.int8)}, TypeError, "int8"),
        ({"parts": np.array([0, -1], dtype=np.int8)}, TypeError, "int8"),
        ({"labels": ("x",)}, ValueError, "1 labels for 2 examples"),
        ({"texts": None}, ValueError, "neither texts nor series"),
        ({"schema": SequenceSchema(text="text", target="target")}, ValueError, "label of no name"),
        ({"series": Ragged(np.zeros((2, 1)), np.array([0, 1, 2]))}, ValueError, "1 channels, and 0 in its schema"),
    ],
)
def test_what_does_not(change, error, said):
    with pytest.raises(error, match=said):
        Sequences(**{**WHOLE, **change})


@pytest.mark.parametrize("names", [{"text": 3}, {"channels": (1,)}, {"channels": ["x"]}, {"id": b"x"}])
def test_a_schema_of_no_names(names):
    with pytest.raises(TypeError, match="does not hold names"):
        SequenceSchema(**names)

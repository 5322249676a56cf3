"""Texts cut into words and joined again: English, Chinese, emoji, and whatever else there is."""
# ruff: noqa: RUF001 - letters that look like others are meant

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data import tokens_words


def words_of(text, chinese=False, lower=True):
    return next(tokens_words.split_words([tokens_words.normal(text, lower)], chinese))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Can't stop; don\u2019t!", ["can't", "stop", ";", "don't", "!"]),
        ("'quoted' rock'n'roll", ["'", "quoted", "'", "rock'n'roll"]),
        ("pi=3.14, 1,000.5 at 12:30. 12.5kg", ["pi", "=", "3.14", ",", "1,000.5", "at", "12:30", ".", "12.5", "kg"]),
        ("#tag @you a@b C#", ["#tag", "@you", "a", "@", "b", "c", "#"]),
        ("see http://a.b/c?d=e). www.x.y很好", ["see", "http://a.b/c?d=e", ")", ".", "www.x.y", "很", "好"]),
        ("well-known snake_case", ["well", "-", "known", "snake_case"]),
        ("good👍🏽 👨\u200d👩\u200d👧🇩🇪🇫🇷", ["good", "👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "🇫🇷"]),
        ("हिन्दी भाषा می\u200cخواهم", ["हिन्दी", "भाषा", "می\u200cخواهم"]),
        ("한국어 좋아요", ["한국어", "좋아요"]),
        ("ดีครับ です", ["ดี", "ค", "รั", "บ", "で", "す"]),
        ("e\u0301te\u0301 ﬁn Ｆｕｌｌ！", ["été", "fin", "full", "!"]),
        ("\ufeffzero\u200bwidth\x00 \u202eright", ["zerowidth", "right"]),
        ("\ud83d\ude00 \ud83d", ["😀", "\ufffd"]),
        ("[PAD] [SEP]", ["[", "pad", "]", "[", "sep", "]"]),
    ],
)
def test_what_a_word_is(text, words):
    assert words_of(text) == words


def test_chinese_words(capfd):
    assert words_of("我们喜欢iPhone手机", chinese=True) == ["我们", "喜欢", "iphone", "手机"]
    assert words_of("我们喜欢") == ["我", "们", "喜", "欢"]
    assert "".join(words_of("我们的中国" * 500, chinese=True)) == "我们的中国" * 500
    assert capfd.readouterr() == ("", "")


def test_jieba_leaves_nothing_behind(tmp_path):
    code = "from tsformer.data.tokens_words import split_words; print(*split_words(['中国人民'], True))"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert (done.stdout, done.stderr) == ("['中国', '人民']\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["the", "cat", "(", "a", ")", ",", "3", "%", "."], "the cat (a), 3%."),
        (["我们", "喜欢", "iphone", "手机", "!", "好"], "我们喜欢 iphone 手机!好"),
        (["[UNK]", "[UNK]", "good"], "[UNK] [UNK] good"),
        ([], ""),
    ],
)
def test_joined_words(words, text):
    assert tokens_words.join_words(words) == text


@settings(max_examples=60)
@given(text=st.text(st.sampled_from("ab 中é.,!'([)]#3👍"), max_size=40))
def test_words_lose_nothing_but_blanks(text):
    words = words_of(text)
    assert "".join(words) == tokens_words.normal(text, lower=True).replace(" ", "")
    assert words_of(tokens_words.join_words(words)) == words or "中" in text


def test_heaps_of_marks():
    """NFKC alone takes minutes to sort them."""
    assert tokens_words.normal("e" + "\u0300\u0316" * 500_000, lower=True) == "è" + "\u0316" * 15 + "\u0300" * 14

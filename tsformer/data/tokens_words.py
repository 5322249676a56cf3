"""Texts cut into words, and words joined into a text.

A word is a run of letters, digits and the marks on them, with apostrophes inside ("can't"); a number with its points
and colons ("3.14", "12:30"); a hashtag, a mention, a web address. Any other character is a word of its own, an emoji
with its skin tone and what is joined to it. Where a script puts no spaces between words, each character is a word;
Chinese is cut by jieba where that is asked for.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from tsformer.errors import UsageError

_HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HAN = re.compile(f"[{_HAN}]")
_UNSPACED = f"{_HAN}\u3040-\u30ff\u31f0-\u31ff\u3100-\u312f\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
UNSPACED = re.compile(f"[{_UNSPACED}]")
"""Scripts without spaces between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer."""

LONGEST_RUN = 200
"""Chinese characters that jieba sees at once: the time it takes may grow with the square of their number."""

_UNSEEN = re.compile(  # controls, soft hyphens, zero-width spaces, direction marks, byte order marks; joiners stay
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_HALF = re.compile("[\ud800-\udfff]")
_APOSTROPHE = re.compile(r"(?<=\w)\u2019(?=\w)")
_CLOSING, _OPENING = frozenset(",.!?;:)]}%…"), frozenset("([{")


def normal(text: str, lower: bool) -> str:
    """The text as tokens see it: in Unicode's form NFKC, without what cannot be seen, one space for any blank.

    Halves of surrogate pairs are put together; one that is alone becomes U+FFFD.
    """
    text = _UNSEEN.sub("", text)
    if not text.isascii():
        if _HALF.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = unicodedata.normalize("NFKC", _APOSTROPHE.sub("'", _heaps().sub("", text)))
    if lower:
        text = unicodedata.normalize("NFKC", text.lower())
    return " ".join(text.split())


def share(texts: Iterable[str], script: re.Pattern[str]) -> float:
    """Share of the letters that belong to a script."""
    letters = "".join(sign for text in texts for sign in text if sign.isalpha())
    return len(script.findall(letters)) / max(1, len(letters))


def split_words(texts: Iterable[str], chinese: bool) -> Iterator[list[str]]:
    """The words of each text, which is `normal`.

    Args:
        texts: any number of them.
        chinese: whether jieba finds Chinese words; else each character is one.

    Raises:
        UsageError: jieba is not installed.
    """
    find, cut = _pattern().findall, _jieba() if chinese else list
    for text in texts:
        found = find(text)
        if HAN.search(text):
            yield [word for run in found for word in (cut(run) if HAN.match(run) else (run,))]
        else:
            yield found


def join_words(words: Sequence[str]) -> str:
    """A text of the words, with spaces where one expects them."""
    text = ""
    for word in words:
        text += f" {word}" if text and _stand_apart(text[-1], word[0]) else word
    return text


def _stand_apart(left: str, right: str) -> bool:
    if right in _CLOSING or left in _OPENING:
        return False
    unspaced = [bool(UNSPACED.match(sign)) for sign in (left, right)]
    return not any(unspaced) or (not all(unspaced) and (left if unspaced[1] else right).isalnum())


@cache
def _marks() -> str:
    """All signs that combine with the one before them, for a class of a pattern."""
    return "".join(sign for sign in map(chr, range(0x300, 0x1F000)) if unicodedata.category(sign).startswith("M"))


@cache
def _heaps() -> re.Pattern[str]:
    """Marks beyond 30 on one sign, the most of Unicode's stream-safe form; NFKC would sort them for minutes."""
    return re.compile(f"(?<=[{_marks()}]{{30}})[{_marks()}]+")


@cache
def _pattern() -> re.Pattern[str]:
    """What `split_words` finds; Chinese characters come in runs."""
    marks = _marks()
    extend = f"[{marks}\u200c\U000e0020-\U000e007f\U000e0100-\U000e01ef\U0001f3fb-\U0001f3ff]"
    letters = rf"[^\W{_UNSPACED}]+(?:[{marks}\u200c\u200d]+[^\W{_UNSPACED}]*)*"
    return re.compile(
        "|".join(
            (
                r"(?:https?://|www\.)[!-~]*[0-9A-Za-z_/]",
                rf"[{_HAN}]{{1,{LONGEST_RUN}}}",
                r"\d+(?:[.,:]\d+)+",
                rf"(?:(?<!\w)[#@])?{letters}(?:'{letters})*",
                "[\U0001f1e6-\U0001f1ff]{2}",  # a flag
                rf"\S{extend}*(?:\u200d\S{extend}*)*",
            )
        )
    )


@cache
def _jieba() -> Callable[[str], list[str]]:
    """What cuts a run of Chinese characters; it prints nothing, and uses no cache file in a folder that all share."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old spellings in its files
            import jieba
    except ImportError:  # not there, or for another Python
        raise UsageError(
            "Chinese words need the package jieba: pip install 'tsformer[text]'; or give --tokens.tokenizer char"
        ) from None

    cutter = jieba.Tokenizer()
    with Path(jieba.__file__).with_name("dict.txt").open("rb") as dictionary:
        cutter.FREQ, cutter.total = cutter.gen_pfdict(dictionary)
    cutter.initialized = True
    return cutter.lcut

"""Bytes as text: by their mark, else UTF-8, else the encoding in which the text reads like somebody's language.

Of legacy encodings nearly every one decodes nearly every file; what tells them apart is whether the letters that come
out are those that a language uses, side by side.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable

from tsformer.errors import DataError, UsageError
from tsformer.findings import Finding

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",  # before UTF-16, whose mark its own begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 1 << 16  # bytes of lines that are not ASCII, enough for statistics
_ENOUGH = 0.6  # how plausible the best reading must be, on a scale from 0 to 1
_SYMBOLS = frozenset("°²³¹µ€£¥§·\u2013—\u2018\u2019“”„…\u00d7±÷™®©«»¿¡ºª‰¼½¾\u00a0")
_KANA = ("HIRAGANA", "KATAKANA")
_EXAMPLES = "cp1252 (Western), gb18030 (Chinese), cp932 (Japanese), cp949 (Korean), cp1251 (Cyrillic) ..."


def check_encoding(encoding: str) -> None:
    """Raise UsageError when Python knows no such encoding of text."""
    try:
        if codecs.lookup(encoding)._is_text_encoding:
            return
    except (LookupError, ValueError):
        pass
    raise UsageError(f"--data.encoding {encoding!r} is not known: for example utf-8, cp1252, latin-1, utf-16")


def as_utf8(content: bytes, encoding: str | None, name: str) -> tuple[bytes, str, tuple[Finding, ...]]:
    """The text in UTF-8 and without a mark, the encoding that it was in, and what was found out and should be said.

    Args:
        content: of a file, unpacked.
        encoding: given by the user; None finds it.
        name: what messages call the file.

    Raises:
        DataError: the bytes are not in that encoding, or in none that can be told, or hold NUL: no text.
    """
    notes: tuple[Finding, ...] = ()
    if encoding is None:
        encoding, notes = _found(content, name)
    elif content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not re.search("16|32", encoding):
        raise DataError(f"{name} is written in UTF-16, not in {encoding}: --data.encoding utf-16")
    if encoding == "utf-8":
        content = content.removeprefix(codecs.BOM_UTF8)
        _check_utf8(content, name)
        return content, encoding, notes
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        raise _undecodable(content, encoding, getattr(error, "start", None), name) from None
    _refuse_nul(text, name)
    return text.removeprefix("\ufeff").encode("utf-8", "surrogatepass"), encoding, notes


def _found(content: bytes, name: str) -> tuple[str, tuple[Finding, ...]]:
    marked = next((encoding for mark, encoding in _MARKS.items() if content.startswith(mark)), None)
    if marked is not None:
        return marked, () if marked == "utf-8" else (_note(marked, "by its mark"),)
    wide = _utf16_without_mark(content)
    if wide is not None:
        return wide, (_note(wide, "by its zero bytes"),)
    if content.isascii():
        return "utf-8", ()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return _legacy(content, error.start, name)
    return "utf-8", ()


def _check_utf8(content: bytes, name: str) -> None:
    """Raises DataError; an ASCII file is not decoded for it."""
    if b"\0" in content:
        _refuse_nul(content.decode("latin-1"), name)
    if not content.isascii():
        try:
            content.decode(errors="surrogatepass")
        except UnicodeDecodeError as error:
            raise _undecodable(content, "utf-8", error.start, name) from None


def _refuse_nul(text: str, name: str) -> None:
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{name} holds a NUL character in line {line}: it is not a text table")


def _utf16_without_mark(content: bytes) -> str | None:
    """Of a text with digits and separators, every other byte is zero."""
    sample = content[:2048]
    if len(sample) >= 8 and len(content) % 2 == 0:
        for encoding, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
            if zeros.count(0) > 0.7 * len(zeros) and sample.count(0) - zeros.count(0) == 0:
                return encoding
    return None


def _legacy(content: bytes, start: int, name: str) -> tuple[str, tuple[Finding, ...]]:
    """Judged on the lines that are not ASCII; the best that decodes the whole file is taken."""
    lines, size = [], 0
    for line in content.splitlines():
        if not line.isascii():
            lines.append(line)
            size += len(line)
            if size > _SAMPLE:
                break
    sample = b"\n".join(lines)
    scores: dict[str, float] = {}
    for encoding, plausibility in _LEGACY.items():
        try:
            scores[encoding] = plausibility(sample.decode(encoding), encoding)
        except UnicodeDecodeError:
            continue
    for encoding in sorted(scores, key=lambda encoding: -scores[encoding]):
        if scores[encoding] < _ENOUGH:
            break
        try:
            content.decode(encoding)
        except UnicodeDecodeError:
            continue
        example = next(line for line in lines[0].decode(encoding).splitlines() if not line.isascii())
        return encoding, (_note(encoding, "by the letters in it", _around(example)),)
    raise _undecodable(content, "utf-8", start, name)


def _undecodable(content: bytes, encoding: str, start: int | None, name: str) -> DataError:
    line = content.count(b"\n", 0, start) + 1
    where = "" if start is None else f" at byte {start} (line {line})"
    remedy = f"give its encoding, --data.encoding {_EXAMPLES}"
    text = f"{name} is not written in {encoding}{where}: {remedy}"
    return DataError(text, finding=Finding("encoding", text, "fault", row=f"line {line}", remedy=remedy))


def _note(encoding: str, why: str, example: str | None = None) -> Finding:
    shown = "" if example is None else f", for example {example!r}"
    return Finding(
        "encoding", f"read as {encoding} {why}{shown} (--encoding says otherwise)", example=example, remedy="--encoding"
    )


def _around(line: str) -> str:
    """The first word that is not ASCII."""
    cell = next(word for word in line.replace(";", ",").replace("\t", ",").split(",") if not word.isascii())
    return cell.strip(' "')[:40]


# How plausible a text is, from 0 to 1: the share of its characters beyond ASCII that such a text would have.


def _western(text: str, encoding: str) -> float:
    """Letters with accents are those of one language, in words with plain ones; symbols such as ° are in no word."""
    languages = _WESTERN[encoding]
    beyond = "".join(
        word.lower()
        for word in re.findall(r"[^\W\d_]+", text)
        if sum(not c.isascii() for c in word) <= 3 * sum(c.isascii() for c in word) or len(word) == 1
    )
    accented = [c for c in beyond if not c.isascii()]
    spoken = max(sum(c in language for c in accented) for language in languages)
    symbols = 0
    padded = f" {text} "
    for before, character, after in zip(padded, padded[1:], padded[2:], strict=False):
        if character in _SYMBOLS:
            in_word = before.isalpha() and (after.isalpha() or character in "µ£¥€")
            symbols += not in_word and (before.isascii() or after.isascii())
    good = symbols + 0.5 * len(accented) + 0.5 * spoken
    # Where several fit alike, the one with the widest use goes first.
    return min(good / max(sum(not c.isascii() for c in text), 1), 1.0) - 0.001 * [*_WESTERN].index(encoding)


def _alphabet(letters: str) -> Callable[[str, str], float]:
    """Words are of these letters throughout, with a capital at most at their start or all over."""

    def plausibility(text: str, encoding: str) -> float:
        good, total = 0.0, 0
        for word in "".join(c if c.isalpha() else " " for c in text).split():
            if word.isascii():
                continue
            own = sum(c in letters for c in word.lower())
            cased = word.islower() or word.isupper() or word.istitle()
            total += len(word)
            if cased:
                good += own if len(word) > 1 else own / 2  # a letter alone may as well be a dash of another encoding
        others = sum(not c.isascii() and not c.isalpha() and c not in _SYMBOLS and c != "№" for c in text)
        return good / max(total + others, 1)

    return plausibility


def _double_byte(
    lead: range, scripts: tuple[str, ...], needed: str | None = None, trail: int = 0xA1
) -> Callable[[str, str], float]:
    """Characters come from the common part of the table, by their first and second byte, or are kana."""

    def plausibility(text: str, encoding: str) -> float:
        beyond = [c for c in text if not c.isascii()]
        if needed is not None and not any(unicodedata.name(c, "").startswith(needed) for c in beyond):
            return 0.0
        good = 0.0
        for character in beyond:
            code = character.encode(encoding)
            called = unicodedata.name(character, "")
            if called.startswith(scripts) and len(code) == 2:
                good += called.startswith(_KANA) or (code[0] in lead and code[1] >= trail)
            elif len(code) == 2 and unicodedata.category(character)[0] in "PS":
                good += 1
        return min(good / max(len(beyond), 1), 1.0)

    return plausibility


_RUSSIAN = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґў"
_GREEK = "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ"
_WEST = ("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíóúüñ", "áâãàçéêíóôõúü", "àèéìòù", "åäöæøé", "éëïóöü", "áéíóúæö")
_WESTERN = {
    "cp1252": _WEST,
    "cp1254": ("çğıöşüâîû",),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöőúüű", "ăâîşţ", "čćđšž", "áäčďéíľĺňóôŕšťúýž"),
    "cp1257": ("āčēģīķļņšūž", "ąčęėįšųūž", "äöõüšž"),
    "mac_roman": _WEST,
}
_LEGACY: dict[str, Callable[[str, str], float]] = {
    "cp949": _double_byte(range(0xB0, 0xC9), ("HANGUL",)),  # the 2350 syllables that Korean mostly uses
    "euc_jp": _double_byte(range(0xB0, 0xD0), ("HIRAGANA", "KATAKANA", "CJK"), needed="HIRAGANA"),
    "cp932": _double_byte(range(0x88, 0x98), ("HIRAGANA", "KATAKANA", "CJK"), trail=0x40),
    "gb18030": _double_byte(range(0xB0, 0xD8), ("CJK",)),
    "cp1251": _alphabet(_RUSSIAN),
    "koi8-r": _alphabet(_RUSSIAN),
    "cp1253": _alphabet(_GREEK),
    **dict.fromkeys(_WESTERN, _western),
    "big5": _double_byte(range(0xA4, 0xC7), ("CJK",), trail=0x40),  # last: "°C" would be one character of it
}

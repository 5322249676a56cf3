"""Bytes as text: by their mark, else UTF-8, else the encoding in which the text reads like somebody's language.

Of legacy encodings nearly every one decodes nearly every file: `scripts` says how plausible what comes out is.
"""

from __future__ import annotations

import codecs
import re

from tsformer.errors import DataError, UsageError
from tsformer.findings import Finding
from tsformer.tables.scripts import PLAUSIBILITY, SCRIPTS

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",  # before UTF-16, whose mark its own begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 1 << 16  # bytes of lines that are not ASCII, enough for statistics
_MARGIN = 0.02  # by which a reading is more plausible than one in another script,
_WORDS = 0.15  # and for few characters this, divided by how many they are: two that are common in heads of tables
_ENOUGH = 0.6  # how plausible the best reading must be, on a scale from 0 to 1
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
        if _is_cut_off(content, error):
            raise _cut_off(content, name) from None
        return _legacy(content, error.start, name)
    return "utf-8", ()


def _is_cut_off(content: bytes, error: UnicodeDecodeError) -> bool:
    """Whether UTF-8 ends within a character; a single letter at the end may be that of another encoding."""
    rest = content[error.start :]
    unfinished = error.reason == "unexpected end of data"
    return unfinished and (len(rest) > 1 or rest in (b"\xc2", b"\xc3") or not content[: error.start].isascii())


def _cut_off(content: bytes, name: str) -> DataError:
    line = content.count(b"\n") + 1
    remedy = "get the whole file, or remove its last line"
    text = f"{name} ends within a character of UTF-8 in line {line}, it is cut off: {remedy}"
    return DataError(text, finding=Finding("cut_off", text, "fault", row=f"line {line}", remedy=remedy))


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
    for encoding, plausibility in PLAUSIBILITY.items():
        try:
            scores[encoding] = plausibility(sample.decode(encoding), encoding)
        except UnicodeDecodeError:
            continue
    readings = [encoding for encoding in scores if scores[encoding] >= _ENOUGH and _decodes(content, encoding)]
    if not readings:
        raise _undecodable(content, "utf-8", start, name)
    best = max(readings, key=lambda encoding: scores[encoding])
    example = next(line for line in lines[0].decode(best).splitlines() if not line.isascii())
    for other in readings:
        alike = SCRIPTS[other] == SCRIPTS[best] or sample.decode(other) == sample.decode(best)
        if not alike and scores[other] > scores[best] - _margin(sample.decode(best), best):
            raise _ambiguous(lines[0], best, other, content.index(lines[0]), content, name)
    return best, (_note(best, "by the letters in it", _around(example)),)


def _margin(text: str, encoding: str) -> float:
    return _MARGIN if SCRIPTS[encoding] == "Latin" else max(_MARGIN, _WORDS / sum(not c.isascii() for c in text))


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _ambiguous(line: bytes, best: str, rival: str, start: int, content: bytes, name: str) -> DataError:
    row = f"line {content.count(bytes([10]), 0, start) + 1}"
    shown = [repr(_around(line.decode(encoding))) for encoding in (best, rival)]
    remedy = f"--encoding {best} or --encoding {rival}"
    text = f"{name} may be in {best} ({shown[0]} in {row}) as well as in {rival} ({shown[1]}): {remedy}"
    return DataError(text, finding=Finding("encoding", text, "fault", row=row, example=shown[0], remedy=remedy))


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

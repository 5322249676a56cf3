"""How plausible it is that a text was written in an encoding, from 0 to 1: its letters are those of a language.

It is the share of the characters beyond ASCII that such a text would have.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_SYMBOLS = frozenset("°²³¹µ€£¥§·\u2013—\u2018\u2019“”„…\u00d7±÷™®©«»¿¡ºª‰¼½¾\u00a0")
_KANA = ("HIRAGANA", "KATAKANA")


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


def _alphabet(letters: str, last: str = "") -> Callable[[str, str], float]:
    """Words are of these letters throughout, `last` at their end only, a capital at most at their start or all over."""

    def plausibility(text: str, encoding: str) -> float:
        good, total = 0.0, 0
        for word in "".join(c if c.isalpha() else " " for c in text).split():
            if word.isascii():
                continue
            own = sum(c in letters for c in word.lower())
            cased = (word.islower() or word.isupper() or word.istitle()) and not set(last) & set(word[:-1])
            total += len(word)
            if cased:
                good += own if len(word) > 1 else own / 2  # a letter alone may as well be a dash of another encoding
        others = sum(not c.isascii() and not c.isalpha() and c not in _SYMBOLS and c != "№" for c in text)
        return good / max(total + others, 1)

    return plausibility


def _double_byte(
    lead: range, scripts: tuple[str, ...], common: str = "", needed: str | None = None, trail: int = 0xA1
) -> Callable[[str, str], float]:
    """Characters come from the common part of the table, by their first and second byte, or are kana.

    None stands within or behind a word of plain small letters. As the parts of two scripts overlap, `common`
    characters, those of words in heads of tables, count a little more.
    """

    def plausibility(text: str, encoding: str) -> float:
        beyond = [c for c in text if not c.isascii()]
        if needed is not None and not any(unicodedata.name(c, "").startswith(needed) for c in beyond):
            return 0.0
        good, known = 0.0, 0
        for before, character, after in zip(f" {text}", text, f"{text[1:]} ", strict=False):
            if character.isascii() or _in_plain_word(before, after):
                continue
            code = character.encode(encoding)
            called = unicodedata.name(character, "")
            if called.startswith(scripts) and len(code) == 2:
                good += called.startswith(_KANA) or (code[0] in lead and code[1] >= trail)
                known += character in common or called.startswith(_KANA)
            elif len(code) == 2 and unicodedata.category(character)[0] in "PS":
                good += 1
        share = good / max(len(beyond), 1)
        return min(share * (0.9 + 0.1 * known / max(len(beyond), 1)), 1.0)

    return plausibility


def _in_plain_word(before: str, after: str) -> bool:
    small = before.isascii() and before.islower()
    return small or (before.isascii() and before.isalpha() and after.isascii() and after.isalpha())


_KOREAN = (
    "날짜매출일시기온강수량년월분초시간지점명번호풍속향습도평균최고저대소압상하가격금액계합전력사용량인구수율종주중단위판"
    "거래내용이름역코드지서울부산경남북도동구군읍면리은행자동차의을를에로한다고출입수비구분기준값품목상점매장고객방문국제"
)
_CHINESE = (
    "日期时间開开盘收盤最高低价價格成交量额額股数數年月分秒小周季度地区區省市县县名称稱编号代码銷销售收入金总總合计計平均"
    "温溫湿濕气氣压壓风風速雨降水天值率人口国國家公司产產品类類型单單位城站点點电電力用户戶北京上海东東西南中大新出进進"
)
_JAPANESE = (
    "年月日時分秒気温平均降水量合計値始終高安出来売上数金額地点名称風速湿度電力使用人口東京大阪国県市区店舗商品曜"
)
_RUSSIAN = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґў"
_GREEK = "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋ"  # ΐ and ΰ are too rare to speak for it
_WEST = ("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíóúüñ", "áâãàçéêíóôõúü", "àèéìòù", "åäöæøé", "éëïóöü", "áéíóúæö")
_WESTERN = {
    "cp1252": _WEST,
    "cp1254": ("çğıöşüâîû",),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöőúüű", "ăâîşţ", "čćđšž", "áäčďéíľĺňóôŕšťúýž"),
    "iso8859-2": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "čćđšž", "áäčďéíľĺňóôŕšťúýž"),
    "cp1257": ("āčēģīķļņšūž", "ąčęėįšųūž", "äöõüšž"),
    "mac_roman": _WEST,
    "cp850": _WEST,
}
PLAUSIBILITY: dict[str, Callable[[str, str], float]] = {
    "cp949": _double_byte(range(0xB0, 0xC9), ("HANGUL",), _KOREAN),  # the 2350 syllables that Korean mostly uses
    "euc_jp": _double_byte(range(0xB0, 0xD0), ("HIRAGANA", "KATAKANA", "CJK"), _JAPANESE, needed="HIRAGANA"),
    "cp932": _double_byte(range(0x88, 0x98), ("HIRAGANA", "KATAKANA", "CJK"), _JAPANESE, trail=0x40),
    "gb18030": _double_byte(range(0xB0, 0xD8), ("CJK",), _CHINESE),
    "cp1251": _alphabet(_RUSSIAN),
    "koi8-r": _alphabet(_RUSSIAN),
    "cp1253": _alphabet(_GREEK, last="ς"),
    **dict.fromkeys(_WESTERN, _western),
    "big5": _double_byte(range(0xA4, 0xC7), ("CJK",), _CHINESE, trail=0x40),  # last: "°C" would be one character of it
}
SCRIPTS = {
    **dict.fromkeys(_WESTERN, "Latin"),
    **dict.fromkeys(("cp1251", "koi8-r"), "Cyrillic"),
    **dict.fromkeys(("gb18030", "big5"), "Chinese"),
    **dict.fromkeys(("euc_jp", "cp932"), "Japanese"),
    "cp949": "Korean",
    "cp1253": "Greek",
}

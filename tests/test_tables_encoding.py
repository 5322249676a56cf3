"""Encodings that nobody names: found by what the text says, and said."""
# ruff: noqa: RUF001  letters that look like Latin ones are what is tried here

import pytest

from tsformer.errors import DataError
from tsformer.tables.encoding import as_utf8

TEXTS = [
    ("cp949", "일시,기온(°C),강수량(mm)\n2016-01-01,1,2\n"),
    ("cp949", "날짜;매출\n2024-01-01;5\n"),
    ("gb18030", "日期,开盘价,收盘价,成交量\n2020-01-01,1,2,3\n"),
    ("gb18030", "地区,销售额\n北京,3\n上海,4\n广州市天河区,5\n"),
    ("big5", "日期,開盤價,收盤價,成交股數\n109/01/02,332,339,1\n"),
    ("cp932", "年月日,平均気温(℃),降水量の合計(mm)\n2020/1/1,5,0\n"),
    ("cp932", "日付,終値,始値\n2020,1,2\n"),
    ("euc_jp", "年月日,平均気温(℃),降水量の合計(mm)\n2020/1/1,5,0\n"),
    ("cp1252", "Datum;Größe;Temperatur °C\n01.01.2020;1,5;3\n"),
    ("cp1252", "date,température,précipitations\n2020-01-01,1,2\n"),
    ("cp1252", "t,°C\n1,2\n"),
    ("cp1252", "date,CO² µg/m³,€\n2020-01-01,1,2\n"),
    ("cp1252", "Straße,Änderung\nZürich,1\nGenève,2\n"),
    ("cp1250", "data,ilość,wartość\nŁódź,1,2\nKraków,2,2\nWrocław,3,3\n"),
    ("cp1250", "měsíc,příjem\nČeské Budějovice,2\n"),
    ("cp1251", "дата,температура,осадки\nМосква,1,2\n"),
    ("cp1251", "день,цена\n1,2\n"),
    ("koi8-r", "дата,температура,осадки\nМосква,1,2\n"),
    ("cp1253", "ημερομηνία,θερμοκρασία\nΑθήνα,3\n"),
    ("cp1254", "tarih,sıcaklık,yağış\nİstanbul,1,2\nŞişli,2,2\n"),
    ("gb18030", "日期,价格\n2024-01-01,5\n"),
    ("gb18030", "A股,PM2.5浓度\n1,2\n"),
    ("cp949", "KOSPI지수,판매량\n1,2\n"),
    ("cp850", "für,größe\n1,2\n"),
    ("cp850", "Datum;Größe;Straße\n1;2;3\n"),
    ("iso8859-2", "data,ilość,wartość\nŚwidnik,1,2\nWrocław,3,3\n"),
    ("iso8859-2", "měsíc,příjem\nPlzeň,2\nŠumava,3\nžatec,3\n"),
    ("utf-16-le", "date,größe\n2020-01-01,1\n"),
    ("utf-16-be", "date,größe\n2020-01-01,1\n"),
]


@pytest.mark.parametrize(("encoding", "text"), TEXTS)
def test_the_text_comes_back(encoding, text):
    content, _, notes = as_utf8(text.encode(encoding), None, "x")
    assert content.decode() == text
    assert len(notes) == 1


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-32"])
def test_marks(mark):
    content, _, notes = as_utf8("größe,y\n1,2\n".encode(mark), None, "x")
    assert content.decode() == "größe,y\n1,2\n"
    assert len(notes) == (mark != "utf-8-sig")


def test_utf8_needs_no_word_and_an_encoding_that_is_given_is_taken():
    assert as_utf8("größe,날짜\n".encode(), None, "x") == ("größe,날짜\n".encode(), "utf-8", ())
    assert as_utf8("ä\n".encode("cp1252"), "cp1251", "x")[0].decode() == "д\n"


def test_a_remark_is_far_below():
    text = "date,y\n" + "2020-01-01,1\n" * 20_000 + "2020-01-01,1 # Größe\n"
    content, encoding, _ = as_utf8(text.encode("cp1252"), None, "x")
    assert (content.decode(), encoding) == (text, "cp1252")


def test_noise_is_refused_with_place_and_remedy():
    with pytest.raises(DataError) as error:
        as_utf8(b"a,b\n1,2\n1,\xa0\x81\xff\xfe\x90\n", None, "x.csv")
    assert "x.csv is not written in utf-8 at byte 10 (line 3)" in str(error.value)
    assert error.value.finding.row == "line 3"


def test_what_reads_alike_in_two_scripts_is_refused():
    content = "嘉庚,杜甫\n1,2\n".encode("gb18030")
    with pytest.raises(DataError) as error:
        as_utf8(content, None, "x.csv")
    assert error.value.finding.kind == "encoding"
    assert "--encoding gb18030" in str(error.value)
    assert "--encoding cp949" in str(error.value)
    assert as_utf8(content, "gb18030", "x.csv")[0].decode() == "嘉庚,杜甫\n1,2\n"


@pytest.mark.parametrize("text", ["größe,y\n1,Zürich", "date,y\n1,東京"])
def test_utf8_that_is_cut_off_is_refused(text):
    whole = text.encode()
    last = len(text[-1].encode()) if not text[-1].isascii() else len("ürich".encode())
    for left in range(1, last):
        content = whole[: len(whole) - left]
        try:
            content.decode()
        except UnicodeDecodeError:
            with pytest.raises(DataError, match=r"x.csv ends within a character of UTF-8 in line 2"):
                as_utf8(content, None, "x.csv")

"""What a study may choose for an option: a range of numbers, or choices; declared by `Field(search=...)`, or in words.

(1e-4, 1e-2)           from one number to another
(16, 256, "log")       on a logarithmic scale, or "linear"; by default logarithmic from a positive number to ten
                       times as much or more
[16, 32, 64]           choices
True                   both values of a switch, all words of a CHOICE
"16:256:log", "16,64"  the same in words
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from pydantic.fields import FieldInfo

if TYPE_CHECKING:
    from tsformer.plugin import Config, OptionType

SCALES = ("log", "linear")
WIDE = 10  # times the low end, from which on a range is logarithmic where nobody says


@dataclass(frozen=True)
class Range:
    """All numbers from one to another, both included.

    Attributes:
        log: whether they are spread over their logarithms.
        whole: whether they are integers.
    """

    low: float
    high: float
    log: bool
    whole: bool

    def __str__(self) -> str:
        """As `read_space` reads it, with the scale always said."""
        return f"{self.low:g}:{self.high:g}:{SCALES[0] if self.log else SCALES[1]}"


@dataclass(frozen=True)
class Choices:
    """Some values."""

    values: tuple[Any, ...]

    @property
    def ordered(self) -> bool:
        """Whether they are ascending numbers, of which neighbours are alike."""
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)
        return numbers and all(low < high for low, high in zip(self.values, self.values[1:], strict=False))

    def __str__(self) -> str:
        return ",".join(str(value).lower() if isinstance(value, bool) else str(value) for value in self.values)


Space = Range | Choices


def declared(config: type[Config], name: str) -> Space | None:
    """The space that a field declares; None without one."""
    extra = config.model_fields[name].json_schema_extra
    found: Any = extra.get("search") if isinstance(extra, dict) else None
    if found is None:
        return None
    from tsformer.plugin import option_type  # which imports this module

    field = config.model_fields[name]
    return read_space(found, field, option_type(field.annotation))


def read_space(given: object, field: FieldInfo, kind: OptionType) -> Space:
    """A space as `Field(search=...)` declares it, or in words.

    Args:
        field: whose bounds it has to keep.
        kind: the type of the field.

    Raises:
        ValueError: it is none for this option; says why.
    """
    if kind.many:
        raise ValueError("an option that may be given several times cannot be searched")
    number, text = kind.words in ("INTEGER", "FLOAT"), isinstance(given, str)
    if isinstance(given, str):
        given = _in_words(given, number)
    if given is True:
        values = {"BOOLEAN": (False, True), "CHOICE": kind.choices}.get(kind.words)
        if values is None:
            raise ValueError("True is for options that are true or false, or a choice of words: give a range or a list")
        return Choices(values)
    if isinstance(given, tuple):
        if not number:
            raise ValueError("a range is for numbers: give a list of choices")
        return _range(given, field, kind, lax=text)
    if isinstance(given, list):
        found = tuple(_valid(value, field, lax=text) for value in given)
        if len(found) < 2 or len(set(found)) < len(found):
            raise ValueError("choices are two values or more, each of them once")
        return Choices(found)
    raise ValueError(f"{given!r} is neither a range (low, high), nor a list of choices, nor True")


def _in_words(text: str, number: bool) -> object:
    """Words of a command line as `Field` has them."""
    if text.strip().lower() in ("", "true", "all"):
        return True
    if number and ":" in text:
        return tuple(part.strip() for part in text.split(":"))
    return [part.strip() for part in text.split(",")]


def _range(given: Sequence[object], field: FieldInfo, kind: OptionType, *, lax: bool) -> Range:
    if len(given) not in (2, 3) or (len(given) == 3 and given[2] not in SCALES):
        raise ValueError("a range is low and high, and 'log' or 'linear' if wanted: 16:256:log, in Python (16, 256)")
    low, high = (_valid(end, field, lax=lax) for end in given[:2])
    if low is None or high is None or not low < high or not math.isfinite(high - low):
        raise ValueError(f"a range goes from a low number to a higher one, not from {low} to {high}")
    if len(given) == 3 and given[2] == "log" and low <= 0:
        raise ValueError(f"a logarithmic range begins above 0, not at {low:g}")
    log = given[2] == "log" if len(given) == 3 else low > 0 and high >= WIDE * low
    return Range(low, high, log, kind.words == "INTEGER")


def _valid(value: object, field: FieldInfo, *, lax: bool) -> Any:
    """A value as the option takes it, within its bounds."""
    kind: Any = Annotated[(field.annotation, None, *field.metadata)]
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
    try:
        return adapter.validate_python(value, strict=not lax)
    except pydantic.ValidationError as error:
        message = error.errors()[0]["msg"]
        raise ValueError(f"{message[:1].lower()}{message[1:]} (got {value!r})") from None

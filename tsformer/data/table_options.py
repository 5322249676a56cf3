"""How a table is read, what its columns are, and what is done about what is missing in it."""

from __future__ import annotations

from typing import Any, Literal

from tsformer.data.declarations import Names
from tsformer.plugin import Config, Field

Missing = Literal["error", "ffill", "linear", "mask", "drop"]
Duplicates = Literal["error", "first", "last", "mean", "sum"]
Gaps = Literal["error", "fill", "split"]

COLUMNS = ("target", "time", "id", "text", "future_covariates", "past_covariates", "static_covariates")
"""Options that name columns."""


class TableOptions(Config):
    """Everything that can be said of a table; what is left open is found in the table itself, and said."""

    target: Names = Field(
        (),
        description="column to forecast: repeat it, or separate names by commas; default: all columns of numbers",
        flag="--target",
    )
    time: Names = Field(
        (),
        description="column of times, or several that make one together (Date,Time); default: the one that holds dates",
        flag="--time",
    )
    id: Names = Field(
        (),
        description="column that tells series apart in a long table, or several that do so together; default: the "
        "columns of words that do, where times repeat",
        flag="--id",
    )
    text: str | None = Field(
        None,
        description="column of texts, of which a forecast sees those up to its start; cells may be empty",
        flag="--text",
        min_length=1,
    )
    future_covariates: Names = Field(
        (),
        description="columns that are known ahead: promotions, holidays, weather forecasts",
        flag="--future-covariates",
    )
    past_covariates: Names = Field(
        (), description="columns that help to forecast and are known up to now only", flag="--past-covariates"
    )
    static_covariates: Names = Field(
        (),
        description="columns with one value for each series: region, size of a shop",
        flag="--static-covariates",
    )
    calendar: Names = Field(
        (),
        description="features of the time that are known ahead: minute, hour, dayofweek, dayofmonth, dayofyear, week, "
        "month, quarter (as sine and cosine), weekend, holiday",
        flag="--calendar",
    )
    holidays: str | None = Field(
        None,
        description="whose holidays: a country (US, DE, US-CA) or an exchange (NYSE, ECB); needs the extra calendar",
        flag="--holidays",
        min_length=1,
    )
    sep: str | None = Field(
        None, description="what separates columns: , ; | or tab; default: found in the file", flag="--sep"
    )
    decimal: str | None = Field(
        None, description="decimal mark: . or ,; default: found in the columns", flag="--decimal"
    )
    encoding: str | None = Field(
        None, description="encoding of the file, for example cp1252; default: found in the file", flag="--encoding"
    )
    header: int | None = Field(
        None,
        ge=0,
        description="line that holds the names of the columns, the first is 1; 0: there is none; default: found in "
        "the file",
        flag="--header",
    )
    na: Names = Field((), description="further cells that stand for a missing value", flag="--na")
    sentinel: tuple[float, ...] = Field(
        (), description="numbers that stand for a missing value, such as -999; may be repeated", flag="--sentinel"
    )
    time_format: str | None = Field(
        None, description="how times are written, for example '%d/%m/%Y %H:%M'", flag="--time-format", min_length=1
    )
    dayfirst: bool | None = Field(
        None, description="whether 01/02/2024 is the first of February; default: what all rows allow", flag="--dayfirst"
    )
    tz: str | None = Field(
        None,
        description="time zone of times that name none, and in which those that do are kept: Europe/Berlin",
        flag="--tz",
        min_length=1,
    )
    freq: str | None = Field(
        None,
        description="step of the times: h, 15min, D, B, W, MS ...; times off it are brought to it; default: the step "
        "that the times take",
        flag="--freq",
        min_length=1,
    )
    missing: Missing = Field(
        "error",
        description="values that are missing: error, carry the last one forward (ffill), a straight line between "
        "neighbours (linear), hide them from the model (mask), or leave out rows that lack one (drop)",
        flag="--missing",
    )
    duplicates: Duplicates = Field(
        "error",
        description="rows of one series and time: error, keep the first or last, or their mean or sum",
        flag="--duplicates",
    )
    gaps: Gaps = Field(
        "error",
        description="times that are missing: error, add rows without values (fill), or no window across a gap (split)",
        flag="--gaps",
    )

    def policies(self) -> dict[str, Any]:
        """In JSON what was said beyond the columns: how new rows of the same table are read, too."""
        kept = set(TableOptions.model_fields).difference(COLUMNS, ("calendar", "holidays"))
        return self.model_dump(mode="json", include=kept, exclude_defaults=True)

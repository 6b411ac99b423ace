"""Tables of results."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from . import _native

_SHOWN_ROWS = 10


class Column(NamedTuple):
    """A column of a :class:`Table`.

    Attributes
    ----------
    name : str
        Its name.
    unit : str
        Its unit, for example ``Mb/s``; empty for names, flags and ratios.
    kind : str
        The type of its cells: ``text``, ``integer``, ``number`` or ``flag``.
    """

    name: str
    unit: str
    kind: str


class Table:
    """A table of results.

    It implements the Arrow PyCapsule interface, so that ``polars.DataFrame(table)``, ``pyarrow.table(table)``, DuckDB and others
    read it without a copy. The metadata of its fields have units under ``unit``. Unmeasured cells are null.

    Examples
    --------
    >>> import apportion as ap
    >>> flows = ap.dumbbell(2, stop="12s", measure_from="2s").run().flows
    >>> flows["flow"]
    ['tcp.1', 'tcp.2']
    >>> [row["valid"] for row in flows]
    [True, True]
    """

    def __init__(self, table: _native.Table) -> None:
        self._table = table
        self._columns = tuple(Column(*column) for column in table.columns)
        self._places = {column.name: place for place, column in enumerate(self._columns)}

    @property
    def name(self) -> str:
        """The name of the table and of its CSV file."""
        return self._table.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Names, units and kinds of the columns."""
        return self._columns

    @property
    def units(self) -> dict[str, str]:
        """The units of the columns that have one, by name."""
        return {column.name: column.unit for column in self._columns if column.unit}

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._table)

    def __getitem__(self, name: str) -> list[Any]:
        """Return the cells of a column, None where unmeasured.

        Raises
        ------
        KeyError
            If there is no such column.
        """
        if name not in self._places:
            known = ", ".join(self._places)
            raise KeyError(f"{name!r} is no column of {self.name}{suggestion(name, self._places)}; the columns are {known}")
        return self._table.column(self._places[name], 0, len(self))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows."""
        # In chunks, so that a long table takes little memory.
        for start in range(0, len(self), 4096):
            yield from self._rows(start, start + 4096)

    def _rows(self, start: int, stop: int) -> list[dict[str, Any]]:
        cells = [self._table.column(place, start, stop) for place in range(len(self._columns))]
        return [dict(zip(self._places, row)) for row in zip(*cells)]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table as a stream of the Arrow C interface."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the schema of the table by the Arrow C interface."""
        return self._table.__arrow_c_schema__()

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists by name."""
        return {column.name: self[column.name] for column in self._columns}

    def to_polars(self) -> polars.DataFrame:
        """Return a data frame of polars, which must be installed."""
        with needing("data frames of polars", "polars"):
            import polars

        return polars.DataFrame(self)

    def to_pyarrow(self) -> pyarrow.Table:
        """Return a table of pyarrow, which must be installed. Its fields have units in their metadata."""
        with needing("tables of pyarrow", "pyarrow"):
            import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame of pandas, which must be installed.

        Unmeasured cells are NaN in columns of numbers and None elsewhere. ``attrs["units"]`` has the units.
        """
        with needing("data frames of pandas", "pandas"):
            import numpy
            import pandas

        columns: dict[str, Any] = {}
        for place, column in enumerate(self._columns):
            floats = self._table.floats(place)
            columns[column.name] = self[column.name] if floats is None else numpy.frombuffer(floats)
        frame = pandas.DataFrame(columns)
        frame.attrs["units"] = self.units
        return frame

    def __repr__(self) -> str:
        """Show the size and the columns."""
        names = [f"{column.name} [{column.unit}]" if column.unit else column.name for column in self._columns]
        return f"<apportion.Table {self.name}: {len(self)} rows of {', '.join(names)}>"

    def _repr_html_(self) -> str:
        head = "".join(_head(column) for column in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(cell))}</td>" for cell in row.values()) + "</tr>"
            for row in self._rows(0, _SHOWN_ROWS)
        )
        more = f"; the first {_SHOWN_ROWS}" if len(self) > _SHOWN_ROWS else ""
        return (
            f"<div style='overflow-x:auto'><p><b>{self.name}</b>: {len(self)} rows{more}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the known name nearest to an unknown one, as part of a message."""
    nearest = difflib.get_close_matches(str(name), list(known), 1)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def _head(column: Column) -> str:
    unit = f"<br><small>{html.escape(column.unit)}</small>" if column.unit else ""
    return f"<th>{html.escape(column.name)}{unit}</th>"


def _cell(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


@contextmanager
def needing(what: str, package: str) -> Iterator[None]:
    """Report what to install if ``what`` imports a missing module; ``package`` is its name for pip."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{what} need {error.name}: pip install {package}", name=error.name) from None

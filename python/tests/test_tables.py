"""Tables go to data frames without loss."""

import math
import sys

import pytest

import apportion as ap

TABLES = ["flows", "links", "series", "allocations", "completions", "media", "statistics", "responses", "phase_sensitivity"]


def test_a_table_is_plain_values(results: ap.Results) -> None:
    flows = results.flows
    assert len(flows) == 8 == len(list(flows))
    assert flows.name == "flows" and flows.columns[0] == ap.Column("point", "", "text")
    assert flows.units["throughput_mbps"] == "Mb/s"
    assert flows["flow"] == ["tcp.1", "tcp.2"] * 4
    assert sum(flows["throughput_mbps"]) == pytest.approx(4 * 3, rel=0.05)
    first = next(iter(flows))
    assert first["valid"] is True and isinstance(first["seed"], int) and first["customer"] is None
    with pytest.raises(KeyError, match="throughput_mbps"):
        flows["throughput"]


@pytest.mark.parametrize("name", TABLES)
def test_data_frames_have_all_cells(results: ap.Results, name: str) -> None:
    pl = pytest.importorskip("polars")
    pytest.importorskip("pandas")
    table: ap.Table = getattr(results, name)
    expected = table.to_dict()
    assert table.to_polars().to_dict(as_series=False) == expected
    assert pl.DataFrame(table).height == len(table)
    arrow = table.to_pyarrow()
    assert arrow.to_pydict() == expected
    for column in table.columns:
        metadata = arrow.schema.field(column.name).metadata or {}
        assert metadata.get(b"unit", b"").decode() == column.unit
    frame = table.to_pandas()
    assert list(frame.columns) == list(expected) and frame.attrs["units"] == table.units
    for column in table.columns:
        if column.kind == "number":
            cells = [math.nan if cell is None else cell for cell in expected[column.name]]
            assert frame[column.name].dtype == "float64"
            assert frame[column.name].tolist() == pytest.approx(cells, nan_ok=True, rel=0, abs=0)
        elif None not in expected[column.name]:
            assert frame[column.name].tolist() == expected[column.name]


def test_the_schema_comes_alone(results: ap.Results) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.schema(results.flows).names == [column.name for column in results.flows.columns]


def test_an_export_outlives_its_table(small: ap.Scenario) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = small.run(progress=False).flows
    rows = list(table)
    exported = pyarrow.table(table)
    unused = table.__arrow_c_stream__()
    del table, unused
    assert exported.to_pylist() == rows


def test_html_shows_units_and_no_more_than_some_rows(results: ap.Results) -> None:
    page = results.series._repr_html_()
    assert "Mb/s" in page and page.count("<tr>") == 11
    assert "8 rows" in repr(results.flows)


def test_the_nearest_name_is_suggested(results: ap.Results) -> None:
    with pytest.raises(KeyError, match="'througput_mbps' is no column of flows \\(did you mean 'throughput_mbps'\\?\\)"):
        results.flows["througput_mbps"]
    with pytest.raises(KeyError, match="'quickstrat' \\(did you mean 'quickstart'\\?\\)"):
        ap.example("quickstrat")
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="\\(did you mean 'delay'\\?\\)"):
        results.plot.cdf("dely")


def test_what_is_not_installed_is_named_with_what_to_install(results: ap.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "apportion._plot", raising=False)
    for name in ("matplotlib", "matplotlib.figure", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    for call, message in (
        (lambda: results.plot, "figures need matplotlib.*: pip install 'apportion\\[plot\\]'"),
        (lambda: results.shares.plot(), "figures need matplotlib.*: pip install 'apportion\\[plot\\]'"),
        (lambda: results.flows.to_pandas(), "data frames of pandas need pandas: pip install pandas"),
        (lambda: results.flows.to_polars(), "data frames of polars need polars: pip install polars"),
    ):
        with pytest.raises(ModuleNotFoundError, match=message):
            call()

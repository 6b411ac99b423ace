"""Shares, figures and sweeps."""

from pathlib import Path
from typing import Any

import pytest

import apportion as ap
from apportion._shares import Share


def test_a_share_is_throughput_over_entitlement(results: ap.Results) -> None:
    assert len(results.shares) == 4
    one = results.shares[0]
    assert (one.point, one.flow, one.group) == ("queue=fifo", "tcp.1", "tcp")
    rows = [row for row in results.flows if row["point"] == one.point and row["flow"] == one.flow]
    ratios = [row["throughput_mbps"] / row["entitlement_mbps"] for row in rows]
    assert one.share == pytest.approx(sum(ratios) / 2)
    # Student's t with one degree of freedom.
    assert one.interval == pytest.approx(12.7062 * abs(ratios[0] - ratios[1]) / 2, rel=1e-4)
    assert one.entitlement == pytest.approx(1.5)
    assert "of its entitlement" in repr(results.shares)


def test_a_single_seed_has_no_interval(small: ap.Scenario) -> None:
    assert all(row.interval is None for row in small.run(progress=False).shares)


def test_html_has_groups_and_is_escaped() -> None:
    s = ap.dumbbell({"a<b": {"count": 3}}, stop="1s", measure_from="0s").set(title="x<y")
    page = s.run(progress=False)._repr_html_()
    assert "a&lt;b" in page and "a<b" not in page and "× 3" in page


def test_figures_are_drawn_and_saved(results: ap.Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for number, figure in enumerate(
        [
            results.shares.plot(),
            results.plot.throughput(),
            results.plot.cdf("delay"),
            results.plot.cdf("throughput_mbps"),
        ]
    ):
        for ending in ("pdf", "svg", "png"):
            figure.savefig(tmp_path / f"{number}.{ending}")
            assert (tmp_path / f"{number}.{ending}").stat().st_size > 1000
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def ys(line: Any) -> list[float]:
    return list(line.get_ydata())


def test_what_is_drawn_is_what_was_measured(results: ap.Results) -> None:
    pytest.importorskip("matplotlib")
    axes = results.shares.plot().axes[0]
    heights = [y for line in axes.lines if line.get_marker() == "o" for y in ys(line)]
    assert sorted(heights) == pytest.approx(sorted(row.share or 0 for row in results.shares))
    panels = results.plot.throughput().axes
    assert [axes.get_title() for axes in panels] == ["queue=fifo", "queue=drr"]
    series = [row for row in results.series if row["point"] == "queue=drr" and row["name"] == "tcp.2"]
    last = max(row["t_s"] for row in series)
    rates = [row["throughput_mbps"] for row in series if row["t_s"] == last]
    line = next(line for line in panels[1].lines if line.get_label() == "tcp.2")
    assert ys(line)[-1] == pytest.approx(sum(rates) / len(rates))
    delays = results.plot.cdf("delay").axes[0].lines[0]
    assert ys(delays) == sorted(ys(delays)) and ys(delays)[-1] == 1


def test_labels_of_points_do_not_overlap() -> None:
    pytest.importorskip("matplotlib")
    red = {"kind": "red", "limit": "100p", "min_th": "10p", "max_th": "50p"}
    s = ap.dumbbell(2, rate="5Mbit", stop="1s", measure_from="0s").set({"queue": ["fifo", red, "drr", "fq_codel"]})
    figure = s.run(progress=False).shares.plot()
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(boxes) == 4
    assert all(left.x1 < right.x0 for left, right in zip(boxes, boxes[1:]))


def test_limits_hold_all_that_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    # The throughput in the second panel is eight times that of the first.
    s = ap.dumbbell({"x": {}, "y": {"source": {"kind": "file", "size": "100kB"}, "start": "1s"}}, rate=["2Mbit", "16Mbit"], stop="4s", measure_from="1s")
    r = s.run(seeds=2, progress=False)
    figures = [r.shares.plot(), r.plot.throughput(), r.plot.cdf("delay"), r.plot.cdf("completion"), r.plot.cdf("throughput_mbps")]
    for figure in figures:
        for axes in figure.axes:
            for line in axes.lines:
                for values, (low, high) in ((line.get_xdata(), axes.get_xlim()), (line.get_ydata(), axes.get_ylim())):
                    if line.get_transform() == axes.transData:
                        assert low <= min(values) and max(values) <= high, axes.get_title()


def test_shares_and_throughputs_do_not_share_an_axis() -> None:
    pytest.importorskip("matplotlib")
    from apportion._plot import shares

    due = Share("", "one", "one", 3.0, 4.0, 0.75, 0.1)
    free = Share("", "two", "two", 5.0, None, None, 0.2)
    for rows, label, heights in (
        ([due, free], "throughput / entitlement", [0.75]),
        ([due], "throughput / entitlement", [0.75]),
        ([free], "throughput, Mb/s", [5.0]),
    ):
        axes = shares(rows).axes[0]
        drawn = [y for line in axes.lines if line.get_marker() == "o" for y in ys(line)]
        assert (axes.get_ylabel(), drawn) == (label, heights)
    assert shares([due, free]).axes[0].get_title(loc="left") == "without an entitlement: two"


def test_what_cannot_be_drawn_is_refused(results: ap.Results) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="'flow' is neither"):
        results.plot.cdf("flow")
    with pytest.raises(ValueError, match="nothing to draw"):
        results.plot.cdf("completion")


def test_many_points_and_flows_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    s = ap.dumbbell(20, stop="1s", measure_from="0s").set({"rate": [f"{n}Mbit" for n in range(2, 16)]})
    r = s.run(progress=False)
    figure = r.plot.throughput()
    assert len(figure.axes) == 12 and len(figure.axes[0].lines) == 1
    assert r.shares.plot().axes


def test_a_sweep_has_its_axes() -> None:
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("xarray")
    s = ap.dumbbell({"x": {}, "y": {"weight": 2}}, stop="2s", measure_from="1s")
    w = ap.sweep(s, {"rate": ["2Mbit", "3.5Mbit"], "delay": ["5ms", "20ms"], "queue": ["fifo", "drr"]}, seeds=2, progress=False)
    data = w.to_xarray()
    assert data["throughput_mbps"].dims == ("rate", "delay", "queue", "replication", "flow")
    assert data["throughput_mbps"].shape == (2, 2, 2, 2, 2)
    assert list(data["rate"].values) == [2e6, 3.5e6] and data["rate"].attrs["units"] == "bit/s"
    assert list(data["queue"].values) == ["fifo", "drr"]
    assert data["throughput_mbps"].attrs["units"] == "Mb/s"
    for row in w.results.flows:
        point = next(point for point in w.scenario.points if point.label == row["point"])
        rate, delay, queue = (point.settings[f"topology.bottleneck.{key}"] for key in ("rate", "delay", "queue"))
        at = data.sel(rate=float(rate[:-4]) * 1e6, delay=float(delay[:-2]) / 1e3, queue=queue, flow=row["flow"])
        assert row["throughput_mbps"] in at["throughput_mbps"].values
    assert not numpy.isnan(data["throughput_mbps"].values).any()
    links = w.to_xarray("links")
    assert float(links["utilisation"].sel(link="bottleneck").min()) > 0.5


def test_sweeps_are_for_clients_of_dask_and_tables_with_axes(small: ap.Scenario) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(TypeError, match="give a distributed.Client"):
        ap.sweep(small, {}, client=object())
    pytest.importorskip("xarray")
    with pytest.raises(ValueError, match="series"):
        ap.sweep(small, {"stop": ["2s"]}, progress=False).to_xarray("series")

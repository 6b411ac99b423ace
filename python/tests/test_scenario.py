"""Scenarios are checked, varied and explained."""

import pickle
from pathlib import Path

import pytest

import apportion as ap

TEXT = """
seed = 3
stop = "2s"
link.x = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
flow.f = { from = "a", to = "b" }
"""


def test_tables_text_and_file_are_the_same_scenario(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(TEXT)
    tables = ap.Scenario(
        title="one",
        seed=3,
        stop="2s",
        link={"x": {"from": "a", "to": "b", "rate": "2Mbit", "delay": "5ms"}},
        flow={"f": {"from": "a", "to": "b"}},
    )
    assert ap.Scenario.load(file) == tables == ap.Scenario.from_text(TEXT).set(title="one")
    assert ap.Scenario.load(str(file)).hash == ap.Scenario.from_text(TEXT).hash


def test_set_returns_a_new_scenario_and_lists_are_sweeps() -> None:
    one = ap.Scenario.from_text(TEXT)
    swept = one.set({"link.x.rate": ["1Mbit", "3Mbit"], "queue": ("fifo", {"kind": "drr", "limit": "70p"})}, stop="1s")
    assert len(one.points) == 1
    assert [point.settings["link.x.rate"] for point in swept.points] == ["1Mbit", "1Mbit", "3Mbit", "3Mbit"]
    assert swept.points[1].label == "rate=1Mbit, queue=drr limit=70p"
    assert 'stop = "1s"' in swept.canonical and "70p" in swept.canonical


def test_a_short_key_is_that_of_the_only_bottleneck() -> None:
    assert ap.example("quickstart").set({"rate": "7Mbit"}).canonical.count('rate = "7Mbit"') == 1
    two = TEXT + 'link.y = { from = "b", to = "c", rate = "2Mbit", delay = "5ms" }'
    with pytest.raises(ap.ScenarioError, match=r"^rate: .*link\.x\.rate or link\.y\.rate"):
        ap.Scenario.from_text(two).set({"rate": "7Mbit"})


def test_an_error_names_key_and_mend() -> None:
    with pytest.raises(ap.ScenarioError, match=r"^flow\.f\.wieght: .*did you mean `weight`") as found:
        ap.Scenario.from_text(TEXT).set({"flow.f.wieght": 2})
    assert [path for path, _ in found.value.problems] == ["flow.f.wieght"]
    assert isinstance(found.value, ValueError)


def test_all_errors_come_at_once_without_lines_that_nobody_wrote() -> None:
    with pytest.raises(ap.ScenarioError) as found:
        ap.Scenario(
            seed=1,
            stop="2s",
            link={"x": {"from": "a", "to": "b", "rate": "2Mbitt", "delay": "5ms", "queue": "fifi"}},
            flow={"f": {"from": "a", "to": "b"}},
        )
    assert [path for path, _ in found.value.problems] == ["link.x.queue", "link.x.rate"]
    for line in str(found.value).splitlines():
        assert line.startswith("link.x.")


def test_an_error_of_text_names_file_and_line() -> None:
    with pytest.raises(ap.ScenarioError, match=r"mine\.toml:4: link\.x\.ratte: .*did you mean `rate`"):
        ap.Scenario.from_text(TEXT.replace("rate =", "ratte ="), origin="mine.toml")


@pytest.mark.parametrize("value", [None, object(), 1j, {1: 2}, 1 << 70, [[]] * 2, [None]])
def test_what_has_no_form_in_a_scenario_is_refused_by_key(value: object) -> None:
    with pytest.raises(ap.ScenarioError, match=r"^flow\.f\.weight"):
        ap.Scenario.from_text(TEXT).set({"flow.f.weight": value})


def test_values_that_contain_themselves_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ap.ScenarioError, match="deeper"):
        ap.Scenario.from_text(TEXT).set({"flow.f.weight": endless})


def test_numpy_and_paths_are_values(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    swept = ap.Scenario.from_text(TEXT).set({"flow.f.weight": numpy.linspace(1, 2, 3), "seed": numpy.int64(5)})
    assert [point.settings["flow.f.weight"] for point in swept.points] == ["1.0", "1.5", "2.0"]
    with pytest.raises(ap.ScenarioError, match="cannot read"):
        swept.set({"flow.f.source": {"kind": "replay", "file": tmp_path / "none.pcap"}})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ap.ScenarioError, match=r"nowhere\.toml"):
        ap.Scenario.load("nowhere.toml")


def test_a_scenario_travels_to_other_processes() -> None:
    one = ap.example("tickets")
    assert pickle.loads(pickle.dumps(one)) == one


def test_every_example_loads() -> None:
    assert "quickstart" in ap.examples()
    for name in ap.examples():
        assert ap.example(name).points
    with pytest.raises(KeyError, match="quickstart"):
        ap.example("quickstar")


def test_a_dumbbell_gives_each_flow_its_hosts() -> None:
    s = ap.dumbbell({"one": {"count": 2}, "two": {"source": {"kind": "cbr", "rate": "1Mbit"}}}, queue=["fifo", "drr"])
    assert "pairs = 3" in s.canonical and 'from = "l{i + 2}"' in s.canonical
    assert len(s.points) == 2


def test_a_dumbbell_counts_as_numpy_does() -> None:
    class Count:
        """An integer like numpy's."""

        def __index__(self) -> int:
            return 3

        def tolist(self) -> int:
            return 3

    assert ap.dumbbell(Count()) == ap.dumbbell(3)
    assert ap.dumbbell({"x": {"count": Count()}}) == ap.dumbbell({"x": {"count": 3}})
    with pytest.raises(TypeError, match="'str'"):
        ap.dumbbell("3")  # type: ignore[arg-type]


def test_a_title_cannot_write_into_the_page() -> None:
    page = ap.dumbbell(title="<script>x</script>")._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_names_are_listed_and_explained() -> None:
    assert {"fifo", "fq_codel", "pfd"} <= {entry.name for entry in ap.disciplines()}
    assert "buffer policy" in ap.explain("pfd")
    with pytest.raises(KeyError, match="did you mean `fq_codel`"):
        ap.explain("fq_codle")
    assert any(entry.name == "pps/table1-sender" for entry in ap.experiments())

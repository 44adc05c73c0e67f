from xml.etree import ElementTree

import pytest

from studies.overview_figure import DARK, LIGHT, OUT, Numbers, figure

NUMBERS = Numbers(
    sessions=12_000,
    rates=(0.2, 0.2, 0.1, 0.2, 0.05, 0.1),
    examination=tuple((value, value - 0.05, value + 0.05) for value in (1.0, 0.7, 0.5, 0.4, 0.3, 0.2)),
    corrected=tuple((value, value - 0.1, value + 0.1) for value in (0.2, 0.3, 0.2, 0.5, 0.2, 0.4)),
    ranking=(3, 5, 1, 0, 2, 4),
    gain=(0.06, -0.031, 0.14),
    recommendation="test",
)


def words(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if "text" in element.tag]


def test_the_figure_says_the_numbers_in_both_palettes() -> None:
    svg = figure(NUMBERS)
    assert "12,000 sessions: what was" in words(svg)
    assert "test: +6 % clicks (−3 % to +14 %)" in words(svg)
    assert [word for word in words(svg) if word in "ABCDEF"][-12:] == list("DDFFBBAACCEE")
    assert all(colour in svg for colour in {**LIGHT, **DARK}.values())


@pytest.mark.parametrize("panel", range(5))
def test_nothing_is_drawn_outside_of_its_panel(panel: int) -> None:
    groups = [element for element in ElementTree.fromstring(figure(NUMBERS)).iter() if element.tag.endswith("}g")]
    width = float(groups[panel][0].attrib["width"])
    for bar in groups[panel][1:]:
        if bar.tag.endswith("rect"):
            assert 0 <= float(bar.attrib["x"]) + float(bar.attrib["width"]) <= width


def test_the_figure_of_the_pages_was_drawn_by_this_code() -> None:
    drawn, written = figure(NUMBERS), OUT.read_text(encoding="utf-8")
    assert (
        written.partition("<style>")[2].partition("</style>")[0]
        == drawn.partition("<style>")[2].partition("</style>")[0]
    )
    assert [word for word in words(written) if word.isalpha()].count("production") == 2

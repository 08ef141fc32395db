"""Where the graph of a batch is drawn."""

from __future__ import annotations

import random
import re
from itertools import combinations, pairwise

import pytest

from apps.jobs.views.batch_graph import FITS, HEIGHT, WIDTH, Drawing, draw, shortened
from apps.runs.selectors.batches import BatchGraph, GraphEdge, GraphNode


def graph_of(edges: dict[str, str], *, outside: str = "") -> BatchGraph:
    """`{"c": "ab"}`: c follows a and b."""
    keys = sorted({*"".join(edges), *"".join(edges.values())})
    nodes = {key: GraphNode(key=key, job=ord(key), name=key, outside=key in outside) for key in keys}
    lines = [GraphEdge(upstream, key, "success") for key, upstreams in edges.items() for upstream in upstreams]
    return BatchGraph("a", nodes, lines)


def points(path: str) -> list[tuple[float, float]]:
    """Points along a line, close to each other."""
    numbers = [float(each) for each in re.findall(r"-?\d+", path)]
    places = list(zip(numbers[::2], numbers[1::2], strict=True))
    found = [places[0]]
    kinds = re.findall(r"[CL]", path)
    index = 1
    for kind in kinds:
        start = found[-1]
        if kind == "L":
            found += [
                (start[0] + (places[index][0] - start[0]) * n / 40, start[1] + (places[index][1] - start[1]) * n / 40)
                for n in range(1, 41)
            ]
            index += 1
            continue
        one, two, end = places[index : index + 3]
        for n in range(1, 41):
            t = n / 40
            parts = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
            found.append(
                (
                    sum(p * each[0] for p, each in zip(parts, (start, one, two, end), strict=True)),
                    sum(p * each[1] for p, each in zip(parts, (start, one, two, end), strict=True)),
                )
            )
        index += 3
    return found


def check(drawing: Drawing) -> None:
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - WIDTH
        assert 0 <= box.y <= drawing.height - HEIGHT
    for one, two in combinations(drawing.boxes, 2):
        apart = abs(one.x - two.x) >= WIDTH or abs(one.y - two.y) >= HEIGHT
        assert apart, f"{one} touches {two}"
    for line in drawing.lines:
        own = {line.edge.upstream, line.edge.key}
        for x, y in points(line.path):
            for box in drawing.boxes:
                if box.key not in own:
                    inside = box.x + 1 < x < box.x + WIDTH - 1 and box.y + 1 < y < box.y + HEIGHT - 1
                    assert not inside, f"the line {line.edge} goes through {box.key}"


def test_a_chain_stands_in_a_row() -> None:
    drawing = draw(graph_of({"b": "a", "c": "b"}))

    assert [box.key for box in sorted(drawing.boxes, key=lambda box: box.x)] == ["a", "b", "c"]
    assert len({box.y for box in drawing.boxes}) == 1


def test_a_long_chain_goes_downwards_and_fits() -> None:
    keys = "abcdefghijkl"
    drawing = draw(graph_of(dict(pairwise(keys[::-1]))))

    assert drawing.width <= FITS
    assert [box.key for box in sorted(drawing.boxes, key=lambda box: box.y)] == list(keys)
    check(drawing)


def test_a_line_that_passes_a_layer_goes_around_its_boxes() -> None:
    check(draw(graph_of({"b": "a", "c": "b", "d": "abc", "e": "ad"})))


def test_a_job_outside_stands_beside_the_first_that_follows_it() -> None:
    drawing = draw(graph_of({"b": "a", "c": "bx"}, outside="x"))
    places = {box.key: box for box in drawing.boxes}

    assert places["x"].x == places["b"].x


def test_without_anything_there_is_a_drawing() -> None:
    assert draw(BatchGraph("")).boxes == []


@pytest.mark.parametrize("seed", range(60))
def test_no_box_touches_another_and_no_line_goes_through_one(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (the same graphs each time)
    keys = "abcdefghijklmnopqrst"[: chance.randint(2, 20)]
    edges = {
        key: "".join(chance.sample(keys[:place], chance.randint(1, min(3, place))))
        for place, key in enumerate(keys)
        if place
    }

    check(draw(graph_of(edges)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("short", "short"),
        ("exactly twenty-one ch", "exactly twenty-one ch"),
        ("one more than twenty-one", "one more than twenty…"),
        ("每日商品价格与库存汇总报告", "每日商品价格与库存汇…"),
        ("", ""),
    ],
)
def test_a_name_takes_no_more_than_its_box(name: str, expected: str) -> None:
    assert shortened(name) == expected

"""Where the boxes and lines of a batch's graph are drawn: in layers, with few crossings and no line through a box.

From left to right or, where that is too wide for a screen, downwards.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from apps.runs.selectors.batches import BatchGraph, GraphEdge

WIDTH, HEIGHT, MARGIN = 180, 58, 8
# What fits beside the sidebar of a small screen.
FITS = 1000
# Between two layers, and between two places of a layer.
BETWEEN, BESIDE = 56, 18
# What a line that passes a layer takes of its length.
LANE = 14
ROUNDS = 8
# In the widths of Latin letters.
NAME_WIDTH = 21


@dataclass(frozen=True, slots=True)
class Box:
    key: str
    x: int
    y: int
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    edge: GraphEdge
    path: str


@dataclass(frozen=True, slots=True)
class Drawing:
    width: int
    height: int
    boxes: Sequence[Box]
    lines: Sequence[Line]


# A place in a layer: the key of a node, or a line that passes through (its number and the number of the layer).
Place = str | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a box `along` the way of the layers and `across` it."""

    along: int
    across: int
    down: bool

    def size(self, place: Place) -> int:
        """What it takes of its layer."""
        return self.across if isinstance(place, str) else LANE

    def start(self, layer: int) -> int:
        return MARGIN + layer * (self.along + BETWEEN)

    def point(self, along: float, across: float) -> tuple[int, int]:
        x, y = round(along), round(across)
        return (y, x) if self.down else (x, y)


@dataclass(slots=True)
class _Grid:
    layers: list[list[Place]]
    # Neighbours one layer further left and right.
    before: dict[Place, list[Place]] = field(default_factory=dict)
    behind: dict[Place, list[Place]] = field(default_factory=dict)
    chains: list[list[Place]] = field(default_factory=list)


def draw(graph: BatchGraph) -> Drawing:
    grid = _grid(graph)
    for turn in range(ROUNDS):
        _sort(grid, from_left=turn % 2 == 0)
    sideways = _drawn(graph, grid, Shape(WIDTH, HEIGHT, down=False))
    if sideways.width <= FITS:
        return sideways
    downwards = _drawn(graph, grid, Shape(HEIGHT, WIDTH, down=True))
    return min(sideways, downwards, key=lambda drawing: drawing.width)


def _drawn(graph: BatchGraph, grid: _Grid, shape: Shape) -> Drawing:
    middles = _middles(grid, shape)
    rows = {place: index for index, layer in enumerate(grid.layers) for place in layer}
    boxes = [
        Box(
            key, *shape.point(shape.start(rows[key]), middles[key] - shape.across / 2), shortened(graph.nodes[key].name)
        )
        for layer in grid.layers
        for key in layer
        if isinstance(key, str)
    ]
    lines = [
        Line(edge, _path(chain, rows, middles, shape))
        for edge, chain in zip(graph.edges, grid.chains, strict=True)
        if chain
    ]
    end = max((middle + shape.size(place) / 2 for place, middle in middles.items()), default=0.0)
    width, height = shape.point(shape.start(len(grid.layers)) - BETWEEN + MARGIN, end + MARGIN)
    return Drawing(width, height, boxes, lines)


def shortened(name: str, most: int = NAME_WIDTH) -> str:
    """As much of a name as its box has room for; Chinese characters are two letters wide."""
    widths = [2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in name]
    if sum(widths) <= most:
        return name
    taken = 0
    for place, width in enumerate(widths):
        taken += width
        if taken > most - 1:
            return f"{name[:place].rstrip()}…"
    return name


# -- layers ---------------------------------------------------------------------------------------------------------


def _grid(graph: BatchGraph) -> _Grid:
    layer_of = {key: index for index, layer in enumerate(graph.layers()) for key in layer}
    for key, node in graph.nodes.items():
        # One that only looks on stands next to the first that follows it, not at the far left.
        if node.outside:
            behind = [layer_of[edge.key] for edge in graph.edges if edge.upstream == key and edge.key in layer_of]
            layer_of[key] = min(behind, default=1) - 1
    grid = _Grid([[] for _ in range(max(layer_of.values(), default=-1) + 1)])
    for key, index in layer_of.items():
        grid.layers[index].append(key)
    for number, edge in enumerate(graph.edges):
        if edge.upstream not in layer_of or edge.key not in layer_of:
            grid.chains.append([])
            continue
        passed = range(layer_of[edge.upstream] + 1, layer_of[edge.key])
        lanes: list[Place] = [(number, index) for index in passed]
        for lane, index in zip(lanes, passed, strict=True):
            grid.layers[index].append(lane)
        chain: list[Place] = [edge.upstream, *lanes, edge.key]
        grid.chains.append(chain)
        for left, right in pairwise(chain):
            grid.behind.setdefault(left, []).append(right)
            grid.before.setdefault(right, []).append(left)
    return grid


def _sort(grid: _Grid, *, from_left: bool) -> None:
    """Each place between its neighbours of the layer before, which leaves few crossings."""
    layers = grid.layers if from_left else grid.layers[::-1]
    neighbours = grid.before if from_left else grid.behind
    positions: dict[Place, float] = {}
    for layer in layers:
        own = {place: index for index, place in enumerate(layer)}
        wanted = {
            place: _mean([positions[each] for each in neighbours.get(place, ())], float(own[place])) for place in layer
        }
        layer.sort(key=lambda place: (wanted[place], own[place]))
        span = max(len(layer) - 1, 1)
        positions |= {place: index / span if len(layer) > 1 else 0.5 for index, place in enumerate(layer)}


def _mean(values: Iterable[float], otherwise: float) -> float:
    found = list(values)
    return sum(found) / len(found) if found else otherwise


# -- coordinates ----------------------------------------------------------------------------------------------------


def _middles(grid: _Grid, shape: Shape) -> dict[Place, float]:
    """Middles of the places: each as near to those of its neighbours as the order in its layer allows."""
    middles: dict[Place, float] = {}
    for layer in grid.layers:
        top = 0.0
        for place in layer:
            middles[place] = top + shape.size(place) / 2
            top += shape.size(place) + BESIDE
    for turn in range(ROUNDS):
        neighbours = (grid.before, grid.behind)[turn % 2]
        for layer in grid.layers if turn % 2 == 0 else grid.layers[::-1]:
            wanted = [_mean([middles[each] for each in neighbours.get(place, ())], middles[place]) for place in layer]
            middles |= dict(zip(layer, _apart(layer, wanted, shape), strict=True))
    top = min((middles[place] - shape.size(place) / 2 for place in middles), default=0.0)
    return {place: middle - top + MARGIN for place, middle in middles.items()}


def _apart(layer: Sequence[Place], wanted: Sequence[float], shape: Shape) -> list[float]:
    """The wanted middles, moved as little as keeps the places in their order and off each other: places that would
    touch become a block, which stands where its members want to be on average."""
    blocks: list[tuple[list[Place], float, float]] = []
    for place, middle in zip(layer, wanted, strict=True):
        members, top, size = [place], middle - shape.size(place) / 2, float(shape.size(place))
        while blocks and blocks[-1][1] + blocks[-1][2] + BESIDE > top:
            others, other_top, other_size = blocks.pop()
            weight = len(others) / (len(others) + len(members))
            shifted = top - other_size - BESIDE
            members = [*others, *members]
            top = other_top * weight + shifted * (1 - weight)
            size = other_size + BESIDE + size
        blocks.append((members, top, size))
    middles: list[float] = []
    for members, top, _whole in blocks:
        y = top
        for place in members:
            middles.append(y + shape.size(place) / 2)
            y += shape.size(place) + BESIDE
    return middles


def _path(chain: Sequence[Place], rows: Mapping[Place, int], middles: Mapping[Place, float], shape: Shape) -> str:
    """From the end of the first box to the beginning of the last, straight through each layer that it passes."""
    here, side = shape.start(rows[chain[0]]) + shape.along, middles[chain[0]]
    parts = [f"M{_text(shape, here, side)}"]
    for place in chain[1:]:
        there, other = shape.start(rows[place]), middles[place]
        bend = (here + there) / 2
        parts.append(f"C{_text(shape, bend, side)} {_text(shape, bend, other)} {_text(shape, there, other)}")
        here, side = there, other
        if not isinstance(place, str):
            here += shape.along
            parts.append(f"L{_text(shape, here, side)}")
    return "".join(parts)


def _text(shape: Shape, along: float, across: float) -> str:
    x, y = shape.point(along, across)
    return f"{x} {y}"

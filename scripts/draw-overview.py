#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws the ratios of the README's table of figures as bars on a logarithmic scale.

    python3 scripts/draw-overview.py README.md docs/results/overview.svg
"""
import math
import re
import sys
from html import escape

BAR, GAP, LEFT, WIDTH, TOP = 16, 8, 330, 420, 34
TICKS = [1, 3, 10, 30, 100, 300]
DECADES = math.log10(TICKS[-1])


def rows(path):
    """Returns the rows of the first table: subject, baseline, and ratio."""
    cells = [line.strip().strip("|").split("|") for line in open(path) if line.startswith("|")]
    for cell in cells:
        if len(cell) != 5:
            continue
        ratio = re.match(r" *([0-9.]+)", cell[3])
        if ratio:
            yield cell[0].strip(), cell[2].strip().split(",")[-1].strip(), float(ratio[1])


def x(ratio):
    """Returns the position of a ratio on the scale, in pixels."""
    return LEFT + WIDTH * math.log10(ratio) / DECADES


def draw(table):
    """Yields the picture as lines of SVG."""
    height = TOP + len(table) * (BAR + GAP) + 10
    width = LEFT + WIDTH + 170
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12"'
    yield '  font-family="sans-serif">'
    yield '<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->'
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    yield f'<text x="{LEFT}" y="13" fill="#333">times as fast (logarithmic)</text>'
    for tick in TICKS:
        yield f'<text x="{x(tick):.0f}" y="28" fill="#777" text-anchor="middle">{tick}</text>'
        yield f'<path d="M{x(tick):.0f} {TOP}V{height - 10}" stroke="#ddd"/>'
    for at, (name, peer, ratio) in enumerate(table):
        top = TOP + at * (BAR + GAP) + GAP // 2
        line = top + BAR - 4
        yield f'<text x="{LEFT - 8}" y="{line}" text-anchor="end">{escape(name)}</text>'
        bar = f'x="{LEFT}" y="{top}" width="{x(ratio) - LEFT:.0f}" height="{BAR}"'
        yield f'<rect {bar} fill="#2a6f97"/>'
        yield f'<text x="{x(ratio) + 6:.0f}" y="{line}">{ratio:g} × {escape(peer)}</text>'
    yield '</svg>'


def main():
    source, target = sys.argv[1:]
    with open(target, "w") as out:
        out.write("\n".join(draw(list(rows(source)))) + "\n")


if __name__ == "__main__":
    main()

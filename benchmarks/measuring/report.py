"""How a reproduction is asked for, and the tables and figures that it leaves."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from measuring.pictures import write_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

# Okabe and Ito, 2008: told apart by colour-blind readers too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def arguments(
    about: str, argv: Sequence[str] | None = None, **more: Mapping[str, object]
) -> argparse.Namespace:
    """Read the options that every reproduction has, and ``more`` of its own (name -> settings)."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--full", action="store_true", help="the size of docs/science, not of CI")
    parser.add_argument("--seeds", type=int, default=None, help="runs of each setting")
    parser.add_argument("--save", type=Path, default=None, help="folder for tables and figures")
    for name, settings in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)  # type: ignore[arg-type]
    return parser.parse_args(argv)


def publish(
    name: str,
    tables: Mapping[str, str],
    figures: Mapping[str, go.Figure],
    folder: Path | None,
) -> None:
    """Print tables under their headings; with a folder, write them and the figures there too.

    Leaves ``<name>.md``, and ``<figure>.html`` (with plotly.min.js beside it) and
    ``<figure>.svg`` for each figure.
    """
    text = "\n\n".join(f"### {heading}\n\n{rows}" for heading, rows in tables.items())
    print(text, flush=True)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    for title, figure in figures.items():
        dress(figure)
        figure.write_html(folder / f"{title}.html", include_plotlyjs="directory")
        write_svg(figure, folder / f"{title}.svg")


def dress(figure: go.Figure) -> go.Figure:
    """Give a figure the look that all of docs/science shares."""
    return figure.update_layout(
        template="plotly_white",
        font={"family": "Helvetica, Arial, sans-serif", "size": 13, "color": "#222222"},
        colorway=COLOURS,
        margin={"l": 64, "r": 24, "t": 56, "b": 56},
        legend={"title": {"text": ""}},
        paper_bgcolor="white",
    )

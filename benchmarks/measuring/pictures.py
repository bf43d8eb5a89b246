"""Plotly figures as SVG files, drawn by the browser that is there."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from plotly.offline import get_plotlyjs

if TYPE_CHECKING:
    from pathlib import Path

    import plotly.graph_objects as go

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 760, 420
_DRAW = """async ([figure, width, height]) => {
    const place = document.getElementById("place");
    await Plotly.newPlot(place, figure.data, figure.layout, {staticPlot: true});
    return Plotly.toImage(place, {format: "svg", width, height, imageDataOnly: true});
}"""


def write_svg(figure: go.Figure, path: Path) -> None:
    """Draw a figure into an SVG file, in the size its layout names or 760 x 420."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        print(f"{path.name}: not drawn, there is no {' or '.join(BROWSERS)} here")
        return
    layout = figure.layout
    size = [layout.width or WIDTH, layout.height or HEIGHT]
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content("<div id='place'></div>")
        page.add_script_tag(content=get_plotlyjs())
        svg = page.evaluate(_DRAW, [json.loads(figure.to_json()), *size])
        browser.close()
    path.write_text(svg, encoding="utf-8")

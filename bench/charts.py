"""Charts of horizontal bars as SVG, for the page of `make bench` and for the documents."""
import html

STYLE = """
svg { font-size: 12px } svg text { fill: #222 } .quiet { fill: #777 }
.rlx { fill: #2563a8 } .peer { fill: #b9c4d0 } .line { stroke: #d33; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) { svg text { fill: #ddd } .quiet { fill: #999 } .peer { fill: #55606b } }
"""
LABEL, WIDTH, ROW = 300, 900, 20  # pixels: the place of labels, all, one bar


def svg(chart, attributes="", style=""):
    """Horizontal bars, and a line at the limit."""
    drawn = [bar for bar in chart.bars if bar.value is not None]
    largest = max([bar.value for bar in drawn] + ([chart.limit] if chart.limit else []), default=0) or 1
    scale = (WIDTH - LABEL - 190) / largest
    height = ROW * len(chart.bars)
    lines = [f'<svg {attributes}width="{WIDTH}" height="{height + 4}" viewBox="0 0 {WIDTH} {height + 4}" role="img">{style}']
    for i, bar in enumerate(chart.bars):
        y, width = i * ROW, max(1, (bar.value or 0) * scale)
        lines.append(f'<text x="{LABEL - 8}" y="{y + 15}" text-anchor="end">{html.escape(bar.label)}</text>'
                     f'<rect class="{"rlx" if bar.ours else "peer"}" x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="{ROW - 6}" rx="2"/>'
                     f'<text class="quiet" x="{LABEL + width + 6:.1f}" y="{y + 15}">{html.escape(bar.text)}</text>')
    if chart.limit:
        x = LABEL + chart.limit * scale
        lines.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}"/>')
    return "\n".join([*lines, "</svg>"])


def svg_file(chart):
    """The same as a file by itself."""
    return svg(chart, 'xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" ', f"<style>{STYLE}</style>") + "\n"

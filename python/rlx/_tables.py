"""Rows that are dicts with the same names."""
import html


class Table(list):
    """A list of rows. A notebook shows it; `columns` and `to_pandas` are for others."""

    def __init__(self, rows, share=None):
        super().__init__(rows)
        self._share = share  # the column of which each row has a share, shown as a bar

    @property
    def columns(self):
        """The values by name: what pandas.DataFrame and others take."""
        return {name: [row[name] for row in self] for name in (self[0] if self else ())}

    def to_pandas(self):
        import pandas  # type: ignore[import-untyped,import-not-found]

        return pandas.DataFrame(self.columns)

    def __repr__(self):
        names = list(self.columns)
        cells = [names, *([_text(row[name]) for name in names] for row in self)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)

    def _repr_html_(self):
        names = list(self.columns)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(self._html_row(row, names) for row in self)}</tbody></table>"

    def _html_row(self, row, names):
        style = ""
        if self._share:
            total = sum(each[self._share] for each in self) or 1
            percent = 100 * row[self._share] / total
            style = f' style="background:linear-gradient(90deg,#9ec5fe {percent:.1f}%,transparent {percent:.1f}%)"'
        return "<tr>" + "".join(f"<td{style if name == self._share else ''}>{html.escape(_text(row[name]))}</td>" for name in names) + "</tr>"


def _text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)

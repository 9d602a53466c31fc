"""The notebooks of examples/python run from top to bottom; what a notebook would show can be shown."""
import ast
import json
import os
import pathlib
import shutil

import models_test
import pytest

BOOKS = sorted(pathlib.Path(os.environ["RLX_ROOT"], "examples", "python").glob("*.ipynb"))


def shown(value):
    """What a notebook asks of the last expression of a cell."""
    for name in ("_repr_svg_", "_repr_html_"):
        if hasattr(value, name):
            getattr(value, name)()
    return repr(value)


@pytest.mark.parametrize("book", BOOKS, ids=[book.stem for book in BOOKS])
def test_notebook(book, tmp_path, monkeypatch):
    (tmp_path / "model").mkdir(), (tmp_path / "encoder").mkdir()
    models_test.folder_of_words(tmp_path / "model")
    models_test.encoder_folder(tmp_path / "encoder")
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__main__"}
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells), "outputs are no part of the examples"
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), book.name, "exec"), scope)
        if last is not None:
            shown(eval(compile(ast.Expression(last.value), book.name, "eval"), scope))
    shutil.rmtree(tmp_path / "model")


def test_there_are_five():
    assert len(BOOKS) == 5

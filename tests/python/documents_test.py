"""The snippets of README.md and docs/python.md run as they stand there, one after another; the stubs say what the module has."""
import os
import re
import shutil
import subprocess
import sys

import models_test
import rlx

ROOT = os.environ["RLX_ROOT"]


def test_snippets_run(tmp_path, monkeypatch, capsys):
    fixtures = os.environ["RLX_FIXTURES"]
    os.mkdir(tmp_path / "model")
    models_test.folder_of_words(tmp_path / "model")
    shutil.copytree(os.path.join(fixtures, "sentence_model"), tmp_path / "encoder")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(fixtures, "hf", "bert", name), tmp_path / "encoder")
    shutil.copy(os.path.join(ROOT, "examples", "mlp.rlx"), tmp_path)
    monkeypatch.chdir(tmp_path)
    for document in ("README.md", os.path.join("docs", "python.md")):
        with open(os.path.join(ROOT, document), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        scope = {}
        for block in blocks:
            exec(compile(block, os.path.basename(document), "exec"), scope)
    printed = capsys.readouterr().out
    assert printed.startswith("[0.9 1.8]\n")
    assert "axis 5 is out of range" in printed and "built at python.md:" in printed
    assert "[ 3. 12.] [3. 3. 3. 3. 3. 3. 3.] 1" in printed


def test_stubs_find_a_wrong_argument(tmp_path):
    source = tmp_path / "user.py"
    source.write_text("import rlx\nsession = rlx.Session(threads='two')\nwidth: int = rlx.SentenceEncoder.open('a').width\n")
    environment = {**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(rlx.__file__))}
    checked = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--follow-imports=silent", str(source)],
                             capture_output=True, text=True, env=environment, check=False)  # fmt: skip
    assert 'user.py:2: error: Argument "threads" to "Session" has incompatible type "str"; expected "int"' in checked.stdout, checked.stdout
    assert "user.py:3" not in checked.stdout

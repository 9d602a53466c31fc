"""Files that the comparisons make once and keep: whole or not there, and made by the code as it is now."""
import hashlib
import pathlib

HERE = pathlib.Path(__file__).parent


def key(*sources):
    """Part of a name that changes with the code in these files of this folder."""
    return hashlib.sha256(b"".join((HERE / source).read_bytes() for source in sources)).hexdigest()[:10]


def kept(path, make):
    """`path`, a file or folder; where it is not there yet, `make` has written it under the name that it is given, and it was then renamed."""
    if not path.exists():
        unfinished = path.with_name(path.name + ".part")
        make(unfinished)
        unfinished.replace(path)
    return path

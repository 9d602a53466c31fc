"""How far long work is: bars of tqdm where it is installed."""
import contextlib


def _bar(what):
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found]
    except ImportError:
        return None
    return tqdm(desc=what)


@contextlib.contextmanager
def shown(progress, what):
    """Gives a function of (done, total), or None. `progress` is such a function, or says whether there is a bar."""
    if callable(progress) or not progress:
        yield progress or None
        return
    bar = _bar(what)

    def report(done, total):
        bar.total = total
        bar.update(done - bar.n)

    try:
        yield report if bar is not None else None
    finally:
        if bar is not None:
            bar.close()

"""Times a call of a peer, as timed.h does ours."""
import statistics
import time


def timed(call, seconds):
    """The fastest and the median of as many calls as fit into `seconds`, three at least, behind one that is not counted."""
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times)

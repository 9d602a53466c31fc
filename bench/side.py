"""One side of a comparison: a program in a process of its own, stopped while others run, so that no idle thread takes their time.

The program prints one line when it is ready, JSON, and then answers each line that it reads with one line.
"""
import ctypes
import json
import os
import signal
import subprocess
import time

LIBC = ctypes.CDLL(None)
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG: a stopped process would else outlive a comparison that is broken off


class Unavailable(Exception):
    """A side that cannot take part; the text says why."""


class Side:
    def __init__(self, command, cpus=None):
        """cpus: how many the process may use; all when not given."""
        allowed = sorted(os.sched_getaffinity(0))[:cpus]

        def prepare():
            LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL)
            os.sched_setaffinity(0, allowed)

        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=prepare)
        line = self.process.stdout.readline()
        self.about = json.loads(line) if line else {"unavailable": f"ended with code {self.process.wait()} (its message is above)"}
        if "unavailable" in self.about:
            self.process.stdin.close()
            self.process.wait()
            raise Unavailable(self.about["unavailable"])
        self.process.send_signal(signal.SIGSTOP)

    def ask(self, line):
        """Lets the process run until it has answered."""
        self.process.send_signal(signal.SIGCONT)
        time.sleep(0.01)  # what its threads do on waking up is over
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        self.process.send_signal(signal.SIGSTOP)
        if not answer:
            raise RuntimeError(f"{self.process.args}: ended while answering {line!r}")
        return answer

    def run(self, count):
        """Seconds of each of `count` runs."""
        return [float(t) for t in self.ask(f"run {count}").split()]

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()

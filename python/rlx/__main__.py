"""The command `rlx` of the wheel."""
import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rlx")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()

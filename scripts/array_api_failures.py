#!/usr/bin/env python3
"""Prints the section of docs/coverage.md on what rlx.numpy fails of the array API standard, from tests/python/array_api_failures.txt."""
import pathlib

LIST = pathlib.Path(__file__).parent.parent / "tests/python/array_api_failures.txt"


def groups():
    """A reason, and how often each test fails for it."""
    result = []
    for line in LIST.read_text().splitlines()[1:]:
        if line.startswith("#"):
            result.append((line[1:].strip(), {}))
        elif line:
            test = line.split("::")[1].split("(")[0]
            test = test + "]" if "[" in test else test
            result[-1][1][test] = result[-1][1].get(test, 0) + 1
    return result


print("\n## Tests of the array API standard that rlx.numpy fails\n\nFrom `tests/python/array_api_failures.txt`, for its version 2024.12.\n")
print("| tests | reason |\n|---|---|")
for reason, tests in groups():
    print(f"| {', '.join(f'`{test}`' + (f' ({count})' if count > 1 else '') for test, count in tests.items())} | {reason} |")

"""What `import kiln` takes: the time of Python with it less that of Python without, medians of processes in turn.

    python bench/python_import.py [--budget MS] [--rounds N]

With --budget, more than that fails. Modules that the program has imported anyway (numpy, torch) are not part of it.
"""
import argparse
import statistics
import subprocess
import sys
import time


def seconds(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, default=0)
    parser.add_argument("--rounds", type=int, default=25)
    o = parser.parse_args()
    for _ in range(2): seconds("import kiln")  # its files are in memory then, and its bytecode is written
    taken = [1e3 * (seconds("import kiln") - seconds("pass")) for _ in range(o.rounds)]
    median = statistics.median(taken)
    late = o.budget and median > o.budget
    print(f"import kiln: {median:.1f} ms, least {min(taken):.1f}" + (" OVER BUDGET" if late else ""))
    sys.exit(bool(late))


if __name__ == "__main__":
    main()

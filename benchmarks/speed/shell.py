"""What a command costs from the shell: CPU seconds of a whole process, the least and the median of several.

    python benchmarks/speed/shell.py INDEX [--query TEXT] [--runs N]

Prints `import counterpoint`, `counterpoint --help`, a search by BM25, and a search as the index is searched
by default. The targets are 0.1, 0.5, 0.5 and 1 CPU second.
"""

import argparse
import resource
import subprocess
import sys
from statistics import median


def seconds_of(command, runs):
    """CPU seconds of each run of a command."""
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return spent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", help="an index with BM25")
    parser.add_argument("--query", default="what is known of whales")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    search = [sys.executable, "-m", "counterpoint", "search", asked.index, asked.query]
    commands = {
        "import counterpoint": [sys.executable, "-c", "import counterpoint"],
        "--help": [sys.executable, "-m", "counterpoint", "--help"],
        "search -w lexical": [*search, "-w", "lexical"],
        "search": search,
    }
    print(f"{'CPU seconds':22} {'least':>6} {'median':>6}")
    for name, command in commands.items():
        spent = seconds_of(command, asked.runs)
        print(f"{name:22} {min(spent):6.3f} {median(spent):6.3f}")


if __name__ == "__main__":
    main()

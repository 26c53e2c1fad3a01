"""Create the environment and install this checkout into it. Run by `make`; needs only Python and pip.

PyTorch's package on PyPI brings several gigabytes of CUDA libraries on Linux. Unless `--torch any` is given,
this takes a CPU build, from PyTorch's own index or from whatever index pip is set up with here, and stops
rather than download CUDA.
"""

import argparse
import json
import subprocess
import sys
import urllib.request
import venv
from pathlib import Path

CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
OLDEST = (3, 11)


def main() -> None:
    """Create, then install torch, then the rest (which asks for torch and finds it there)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--venv", type=Path, default=Path(".venv"))
    parser.add_argument("--extras", default="minilm", help="comma-separated extras of pyproject.toml")
    parser.add_argument("--torch", choices=["cpu", "any"], default="cpu")
    options = parser.parse_args()
    if sys.version_info < OLDEST:
        stop(
            f"Python {'.'.join(map(str, OLDEST))} or newer is needed, this is {sys.version.split()[0]}; "
            "name another with: make PYTHON=python3.12 …"
        )
    python = options.venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        print(f"creating {options.venv}", flush=True)
        venv.create(options.venv, with_pip=True)
    install_torch(python, options.torch)
    print(f"installing counterpoint with the extras {options.extras}", flush=True)
    pip(python, "--constraint", "constraints.txt", "--editable", f".[{options.extras}]")


def install_torch(python: Path, variant: str) -> None:
    """Install the torch of constraints.txt, as a CPU build unless any will do."""
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
        return
    wanted = next(line for line in Path("constraints.txt").read_text().split() if line.startswith("torch=="))
    print(f"installing {wanted}", flush=True)
    if variant == "any":
        return pip(python, wanted)
    if reachable(CPU_WHEELS):
        return pip(python, wanted, "--extra-index-url", CPU_WHEELS)
    print(f"{CPU_WHEELS} cannot be reached; asking the indexes that pip is set up with", flush=True)
    plan = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-", wanted],
        capture_output=True,
        text=True,
    )
    if plan.returncode:
        stop(f"pip finds no {wanted}:\n{plan.stderr}")
    names = [item["metadata"]["name"] for item in json.loads(plan.stdout)["install"]]
    if any(name.startswith("nvidia") for name in names):
        stop("they offer only the CUDA build, several gigabytes. To take it all the same: make TORCH=any …")
    return pip(python, wanted)


def reachable(address: str) -> bool:
    """Whether an address answers within a few seconds."""
    try:
        with urllib.request.urlopen(address + "/", timeout=5):
            return True
    except OSError:
        return False


def pip(python: Path, *arguments: str) -> None:
    """Install, or stop with pip's own words."""
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command).returncode:
        stop("pip could not install this; see above")


def stop(reason: str) -> None:
    """End with a message and exit code 2, as the command line does."""
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()

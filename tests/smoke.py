"""Whether an installed rankstream works at all: every public name, and every command on ``examples/cafe.csv``.

``make oldest``, ``make newest`` and ``make wheel`` run this with the Python of an environment of their own, in which
rankstream is installed as users install it. With ``--lowest`` it prints the oldest allowed version of every dependency
instead, as constraints for pip.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path
from re import match
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
CAFE = str(ROOT / "examples" / "cafe.csv")
MODEL = ("fit", CAFE, "-o", "model.json")
COMMANDS = (
    MODEL,
    *(("fit", CAFE, "-o", f"{name}.json", "--method", name) for name in ("nearest", "primal-dual", "mnl", "mle")),
    ("predict", "model.json", "--offer", "cake;nothing"),
    ("predict", "nearest.json", "--offer", "cake;nothing", "--interval", "0.9", "--data", CAFE),
    ("show", "nearest.json"),
    *(("plot", "nearest.json", "--kind", kind, "-o", f"{kind}.png") for kind in ("segments", "substitution")),
    ("decide", "model.json", "--margins", "margins.csv", "--at-most", "2"),
    ("report", "nearest.json", "--data", CAFE, "--margins", "margins.csv", "--replicates", "5"),
    ("drift", CAFE, CAFE),
    ("drift", "model.json", "nearest.json"),
    ("compare", CAFE, "--models", "mnl,nearest", "--folds", "2"),
    ("stream", "lines.jsonl", "--to-end", "--out", "stream"),
)
LINE = '{"offered": ["tea", "nothing"], "chosen": "tea"}\n'


def lowest() -> Iterator[str]:
    """The oldest allowed version of every dependency, and of those of the extra ``excel``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for need in (*project["dependencies"], *project["optional-dependencies"]["excel"]):
        name, _, least = need.partition(">=")
        yield f"{name}=={least}"


def run(words: tuple[str, ...], folder: str) -> None:
    """Run a command of the installed package; what it prints is shown where it fails."""
    command = [str(Path(sys.executable).parent / "rankstream"), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout or "Warning" in done.stderr:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}")


def smoke() -> None:
    """Ask for every public name, run every command, and print the versions that it worked with."""
    import rankstream
    from rankstream.cli.app import COMMANDS as NAMES

    if not Path(rankstream.__file__).is_relative_to(sys.prefix):
        sys.exit(f"This is {rankstream.__file__}, not an installed package: run it in an environment of its own.")
    for name in rankstream.__all__:
        getattr(rankstream, name)
    with TemporaryDirectory() as folder:
        Path(folder, "margins.csv").write_text("item,margin\ntea,2\ncake,1.5\npie,1\n", encoding="utf-8")
        Path(folder, "lines.jsonl").write_text(LINE * 50, encoding="utf-8")
        for words in (("--version",), ("--help",), *((name, "--help") for name in NAMES), *COMMANDS):
            run(words, folder)
    needs = [match(r"[\w-]+", need) for need in requires("rankstream") or () if "extra ==" not in need]
    versions = ", ".join(f"{need[0]} {version(need[0])}" for need in needs if need)
    sys.stdout.write(f"Python {sys.version.split()[0]}, {versions}: works.\n")


if __name__ == "__main__":
    if "--lowest" in sys.argv:
        sys.stdout.writelines(f"{line}\n" for line in lowest())
    else:
        smoke()

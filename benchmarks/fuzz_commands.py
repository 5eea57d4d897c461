"""What ``fuzz.py`` tries: every command, the kinds of files that it reads, its options, and values to give them."""

TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".soi", ".csv.gz", ".jsonl.gz")
KINDS = {
    "fit": (*TABLES, "options"),
    "predict": (".model", ".model", ".offers", ".offers", ".csv", "options"),
    "show": (".model", ".model", ".model", "options"),
    "plot": (".model", *TABLES, "options"),
    "decide": (".model", ".items", ".items", ".csv", "options"),
    "stream": (".jsonl", ".jsonl", ".npz", ".npz", ".jsonl.gz", "options"),
    "drift": (*TABLES, *TABLES, ".model", ".model", "options"),
    "compare": (*TABLES, "options"),
    "reproduce": (".toml", "options"),
    "report": (".model", ".csv", ".items", ".html", "options"),
    "open": ("options",),
    "serve run": ("options",),
    "serve backup": (".sqlite3", "options"),
    "serve export": (".sqlite3", "options"),
    "serve purge": (".sqlite3", "options"),
    "serve rebuild": (".sqlite3", "options"),
    "serve learn": ("options",),
    "serve migrate": (".sqlite3", "options"),
    "serve token create": (".sqlite3", "options"),
    "serve token list": (".sqlite3", "options"),
    "serve token revoke": (".sqlite3", "options"),
}
"""What each command is given; a kind that is quick stands there twice."""
PAIRS = [(command, kind) for command, kinds in KINDS.items() for kind in kinds]
NUMBERS = ["0", "1", "2", "0.5", "-1", "nan", "inf", "1e400", "", "x", "0.999", "3,4", "9" * 30, "0.2,0.4"]
NAMES = [
    "tea",
    "pie;tea",
    "tea;nothing",
    "",
    "é",
    "[",
    '["tea"]',
    "tea:pie",
    "tea @ 3.00",
    "offered=chosen",
    "3,4;5",
    "price",
    "2024-02",
    "7d",
    "--",
    "nothing",
    "a;" * 300,
    "\x01",
]
FILES = ["good.csv", "good.model", "missing", ".", "good.csv/x", "/dev/null"]
WRITTEN = ("--out", "--rejects", "--plot")  # which are never a device: a fuzzer may run as root
READING_WORDS = (
    *("--no-choice", "--format", "--columns", "--separator", "--encoding", "--sheet", "--partitions"),
    *("--price-columns", "--price-levels", "--on-error", "--decimal", "--dates"),
    *("--category", "--per-receipt", "--conflicts", "--stock-format", "--timezone"),
)
READING_PATHS = ("--contents", "--rejects", "--stock", "--visits", "--price-list")
NUMERIC = {
    "fit": ("--tolerance", "--seed", "--outside-share", "--half-life", "--budget", "--jobs", "--timeout"),
    "predict": ("--seed", "--interval", "--replicates", "--outside-share"),
    "show": ("--top", "--seed", "--replicates", "--outside-share"),
    "plot": ("--top", "--seed", "--replicates", "--outside-share"),
    "decide": (
        *("--at-most", "--at-least", "--capacity", "--top", "--seed", "--budget", "--changes"),
        "--outside-share",
    ),
    "report": ("--at-most", "--top", "--replicates", "--budget", "--seed", "--outside-share"),
    "stream": ("--half-life", "--window", "--threshold", "--rounds", "--seed", "--every"),
    "drift": ("--level", "--min-change", "--top"),
    "compare": ("--folds", "--seed", "--outside-share"),
    "reproduce": ("--instances", "--jobs", "--seed"),
    "open": ("--budget", "--port", "--seed", "--outside-share"),
    "serve run": ("--port", "--seed", "--keep"),
}
"""Options that take a number, or a number with a unit."""
WORDS = {
    "fit": ("--since", "--method", "--by", "--between", *READING_WORDS),
    "predict": ("--offer", "--market", "--between", *READING_WORDS),
    "show": ("--market", "--between", *READING_WORDS),
    "plot": ("--kind", "--offer", "--period", "--item", "--market", *READING_WORDS),
    "decide": (
        *(
            "--must",
            "--never",
            "--requires",
            "--excludes",
            "--strategy",
            "--ladder",
            "--present",
            "--market",
            "--currency",
            "--since",
            "--between",
        ),
        *READING_WORDS,
    ),
    "report": ("--market", "--title", "--present", "--currency", "--between", *READING_WORDS),
    "stream": (
        *("--publish", "--separator", "--price-levels", "--no-choice", "--columns", "--price-columns", "--on-error"),
        *("--decimal", "--dates"),
    ),
    "drift": ("--at", "--control", "--by", "--market", *READING_WORDS),
    "compare": ("--models", "--holdout", *READING_WORDS),
    "open": ("--by", "--method", *READING_WORDS),
    "serve run": ("--host", "--allow-host", "--limit"),
    "serve token create": ("--market", "--may", "--name", "--expires"),
}
"""Options that take a name, names or a list."""
PATHS = {
    "fit": ("--out", "--attributes", *READING_PATHS),
    "predict": ("--offers", "--items", "--data", *READING_PATHS),
    "show": ("--data", *READING_PATHS),
    "plot": ("--data", "--out", *READING_PATHS),
    "decide": ("--margins", "--items", "--data", "--plot", *READING_PATHS),
    "report": ("--data", "--out", "--margins", *READING_PATHS),
    "stream": ("--out",),
    "drift": READING_PATHS,
    "compare": ("--plot", *READING_PATHS),
    "open": ("--folder", *READING_PATHS),
    "reproduce": ("--out",),
}
"""Options that take a file or a folder."""
FLAGS = {
    "fit": ("--pool", "--no-standard-errors"),
    "predict": ("--forced", "--range"),
    "show": ("--sell-outs",),
    "decide": ("--safe", "--next", "--intervals", "--lost-sales"),
    "report": ("--intervals",),
    "stream": ("--detect", "--to-end"),
    "drift": ("--by-offer",),
    "open": ("--browser",),
    "serve run": ("--new-markets",),
}
"""Options that take nothing; ``--json`` is tried with every command."""

"""Puts the study's report and its figures into the site while it is built; no copies are kept in docs.

Examples get the highlighting of a Python session, whose prompts and answers are left out when a reader copies a block
(extra.css).
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

RESULTS = Path(__file__).parents[1] / "experiments" / "results"
FOLDER = "study"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add report, figures and table under ``study/``."""
    for path in sorted(RESULTS.iterdir()):
        if path.name in ("report.md", "summary.csv") or path.suffix == ".png":
            files.append(File.generated(config, f"{FOLDER}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to the report as it lies in the repository become links to its page, examples Python sessions."""
    linked = re.sub(r"\]\(\.\./experiments/results/", f"]({FOLDER}/", markdown)
    return re.sub(r"^```python\n>>> ", "```pycon\n>>> ", linked, flags=re.MULTILINE)

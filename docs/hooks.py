"""Puts the study's report, its figures and the beginning of the README into the site; no copies are kept in docs.

Examples get the highlighting of a Python session, whose prompts and answers are left out when a reader copies a block
(extra.css).
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

RESULTS = Path(__file__).parents[1] / "experiments" / "results"
FOLDER = "study"
README = Path(__file__).parents[1] / "README.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add report, figures and table under ``study/``."""
    for path in sorted(RESULTS.iterdir()):
        if path.name in ("report.md", "summary.csv") or path.suffix == ".png":
            files.append(File.generated(config, f"{FOLDER}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to the report as it lies in the repository become links to its page, examples Python sessions."""
    markdown = re.sub(r"^<!-- README: (.+) -->$", _of_readme, markdown, flags=re.MULTILINE)
    up = "../" * page.file.src_uri.count("/")
    linked = re.sub(r"\]\((?:\.\./)+experiments/results/", f"]({up}{FOLDER}/", markdown)
    return re.sub(r"^```python\n>>> ", "```pycon\n>>> ", linked, flags=re.MULTILINE)


def _of_readme(part: re.Match[str]) -> str:
    """What stands between ``<!-- NAME -->`` and ``<!-- end -->`` in the README, or its section of that name."""
    text = README.read_text(encoding="utf-8")
    name = re.escape(part[1])
    marked = re.search(rf"^<!-- {name} -->\n(.*?)^<!-- end -->$", text, re.DOTALL | re.MULTILINE)
    found = marked or re.search(rf"^(## {name}\n.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"README.md has no part {part[1]!r}: correct the line in the page, or the README.")
    return re.sub(r"\]\((?:docs/|(?=experiments/))", "](", found[1])

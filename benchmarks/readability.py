"""Readability of the documentation: sentence lengths and Flesch-Kincaid grade, page by page.

``python benchmarks/readability.py`` reads README.md and docs/; ``--long 30`` also prints sentences of over 30 words.
Code, tables and headings do not count. A list item is a paragraph of its own.
"""

import argparse
import re
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[1]
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(`*\[]*[A-Z0-9`])")
WORD = re.compile(r"[A-Za-zÀ-ÿ0-9][\w'.,@/-]*")
NOT_PROSE = re.compile(
    r"^(```.*?^```|<.*?>$|:::.*?$|!\[.*?$|#.*?$|\|.*?$| {4}.*?$)",  # code, tags, pictures, headings, tables
    re.DOTALL | re.MULTILINE,
)


def sentences(markdown: str) -> list[list[str]]:
    """The words of every sentence of a page."""
    prose = NOT_PROSE.sub("\n\n", markdown)
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)(\{[^}]*\})?", r"\1", prose)  # links are read by their text
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose)
    joined = (" ".join(paragraph.split()) for paragraph in paragraphs)
    found = (WORD.findall(sentence) for text in joined for sentence in SENTENCE_END.split(text))
    return [words for words in found if len(words) > 2]


def syllables(word: str) -> int:
    """About how many: groups of vowels, without a silent e at the end."""
    spoken = re.sub(r"[^a-z]", "", word.lower())
    groups = len(re.findall(r"[aeiouy]+", spoken))
    return max(1, groups - (spoken.endswith("e") and not spoken.endswith("le") and groups > 1))


def grade(found: list[list[str]]) -> float:
    """Flesch-Kincaid: the year of school in which a text is easy to read."""
    words = [word for sentence in found for word in sentence]
    return 0.39 * len(words) / len(found) + 11.8 * sum(map(syllables, words)) / len(words) - 15.59


def row(name: str, found: list[list[str]]) -> str:
    """One line of the table."""
    lengths = sorted(len(words) for words in found)
    tail = quantiles(lengths, n=10)[-1] if len(lengths) > 1 else lengths[0]
    long = sum(length > 25 for length in lengths) / len(lengths)
    return f"{name:44}{len(lengths):6}{median(lengths):8.0f}{tail:6.0f}{long:8.0%}{grade(found):8.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure how readable README.md and docs/ are.")
    parser.add_argument("--long", type=int, help="also print sentences of more words than this")
    parser.add_argument("pages", nargs="*", type=Path, help="pages (default: README.md and docs/)")
    options = parser.parse_args()
    pages = options.pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    print(f"{'page':44}{'sentences':>6}{'median':>8}{'p90':>6}{'> 25':>8}{'grade':>8}")
    everything: list[list[str]] = []
    for page in pages:
        found = sentences(page.read_text(encoding="utf-8"))
        everything += found
        if found:
            print(row(str(page.resolve().relative_to(ROOT)), found))
            for words in found:
                if options.long and len(words) > options.long:
                    print(f"    {len(words)}: {' '.join(words)}")
    print(row("all", everything))


if __name__ == "__main__":
    main()

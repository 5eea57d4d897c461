import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rankstream import ChoiceCounts, estimate, load_model, read
from rankstream.cli.app import make_app
from rankstream.decide import best_offer, next_offer, safe_offer
from rankstream.decide.next import How

CHOICES = """offered,chosen,count
tea@3.00;cake@4.00;nothing,tea,430
tea@3.00;cake@4.00;nothing,cake,400
tea@3.00;cake@4.00;nothing,nothing,170
tea@3.50;cake@4.00;nothing,tea,290
tea@3.50;cake@4.00;nothing,cake,470
tea@3.50;cake@4.00;nothing,nothing,240
tea@3.50;cake@5.00;nothing,tea,420
tea@3.50;cake@5.00;nothing,cake,200
tea@3.50;cake@5.00;nothing,nothing,380
"""
COSTS = {"tea": 1.2, "cake": 2.5}
Decide = Callable[..., Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of choices, and a model fitted to it."""
    path = tmp_path_factory.mktemp("shop")
    (path / "shop.csv").write_text(CHOICES)
    estimate(read(path / "shop.csv", prices="offered").counts, method="nearest").model.save(path / "model.json")
    return path


@pytest.fixture
def decide(folder: Path) -> Decide:
    """Run ``decide`` on that model, with a table of items."""

    def run(*words: str, table: str = "item,unit_cost\ntea,1.2\ncake,2.5\n") -> Result:
        (folder / "items.csv").write_text(table)
        files = [str(folder / "model.json"), "--margins", str(folder / "items.csv")]
        filled = [word.replace("SHOP", str(folder / "shop.csv")) for word in words]
        return CliRunner().invoke(make_app(("decide", "show")), ["decide", *files, *filled])

    return run


@pytest.fixture
def counts(folder: Path) -> ChoiceCounts:
    return read(folder / "shop.csv", prices="offered").counts


def test_items_at_prices_from_a_table_of_costs(decide: Decide) -> None:
    said = decide()
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith(
        "Best according to the model: cake @ 5.00, tea @ 3.00: earns 163.4 per 100 customers\nProven best: by "
    )
    assert "Pricing tea at 3.50 instead of 3.00 would cost 16.8." in said.output
    content = json.loads(decide("--json").output)
    assert content["prices"] == {"cake": 5.0, "tea": 3.0}
    assert set(content["shares"]) == {"tea", "cake", "nothing"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--must", "tea@3.50"), {"must": ["tea @ 3.50"]}),
        (("--never", "tea"), {"never": ["tea"]}),
        (("--never", "tea @ 3.00", "--at-most", "1"), {"never": ["tea @ 3.00"], "at_most": 1}),
        (("--present", "tea@3.50;nothing", "--changes", "1"), {"present": {"tea": 3.5, "nothing": None}, "changes": 1}),
        (("--ladder", "cake:tea"), {"ladders": [("cake", "tea")]}),
        (("--requires", "tea:cake@4.00"), {"requires": [("tea", "cake @ 4.00")]}),
    ],
)
def test_what_constrains_names_items_or_levels(
    decide: Decide, folder: Path, words: tuple[str, ...], said: dict[str, Any]
) -> None:
    content = json.loads(decide("--json", *words).output)
    model = load_model(folder / "model.json")
    wanted = best_offer(model, costs=COSTS, **said)
    assert content["prices"] == wanted.prices
    assert content["value"] == wanted.value < best_offer(model, costs=COSTS).value


@pytest.mark.parametrize(
    ("words", "table", "sentence"),
    [
        ((), "item,price\ntea,1\n", "needs the columns item and unit_cost (or margin, for levels); it has"),
        (
            (),
            "item,margin\ntea,1\n",
            "'tea' needs a unit cost to decide its price. Add a column unit_cost.",
        ),
        ((), "item,unit_cost\ntea,1\n", "The item 'cake' has no cost: give what a sale of it costs, 0 if nothing."),
        ((), "item,unit_cost\ntea,1\ntea,1\n", "lists 'tea' again: keep one line per item."),
        (
            (),
            "item,unit_cost\ntea @ 3.00,1\n",
            "'tea @ 3.00' has no price to decide, so it needs a margin. Add a column margin.",
        ),
        ((), "item,unit_cost\ntea @ 9.00,1\n", "tea @ 9.00"),
        (
            ("--changes", "1"),
            "item,unit_cost\ntea,1\ncake,1\n",
            "--changes counts from today's offer: add --present",
        ),
        (("--ladder", "tea:nothing"), "item,unit_cost\ntea,1\ncake,1\n", "ladders names 'nothing', which has no price"),
    ],
)
def test_bad_input_is_one_sentence(decide: Decide, words: tuple[str, ...], table: str, sentence: str) -> None:
    error = decide(*words, table=table).exception
    assert isinstance(error, ValueError)  # main() turns it into a line and exit code 2
    assert sentence in str(error)


def test_margins_by_level_and_an_empty_line_for_nothing(decide: Decide) -> None:
    lines = ["item,margin", "tea @ 3.00,1.8", "tea@3.50,2.3", "cake @ 4.00,1.5", "cake @ 5.00,2.5", "nothing,"]
    assert decide("--json", table="\n".join(lines)).output.startswith('{\n  "offer": [\n    "cake @ 5.00"')


def test_safe_and_next_offers_have_items_at_one_level(decide: Decide, counts: ChoiceCounts) -> None:
    safe = safe_offer(counts, costs=COSTS, max_scenarios=5)
    best = best_offer(safe.best.problem.model, costs=COSTS)
    assert safe.low >= safe.best_low
    assert safe.best.value == best.value
    assert len({item.split(" @ ")[0] for item in map(str, safe.offer)}) == len(safe.offer)
    ways: tuple[How, ...] = ("greedy", "ucb")
    for how in ways:
        tried = next_offer(counts, None, how, costs=COSTS, must=["cake"], redraws=2)
        names = [str(item).split(" @ ")[0] for item in tried.offer]
        assert "cake" in names
        assert len(set(names)) == len(names)
    assert decide("--safe", "--data", "SHOP", "--price-columns", "offered").exit_code == 0

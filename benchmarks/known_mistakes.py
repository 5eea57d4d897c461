"""Mistakes that were made once, or that no test noticed once, put back one at a time: does the named test fail?

The table has the 14 mutants that survived in version 0.3, by letters, and what was wrong there, by the numbers of
``docs/explanation/quality.md``. Run with ``python benchmarks/known_mistakes.py [item ...]``. Every mistake is made in a
private copy of the project, as ``mutants.py`` does it, and only the named test is run. A mistake whose text is no
longer in the source is an error: change the table along with the source.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from forks import Collection
from mutants import ROOT, Copy, Mutant
from mutations import Mutation

SECONDS = 60.0  # CPU seconds of a test


class Mistake(NamedTuple):
    """A text of a module, by what it is replaced, and the test that notices, all of whose cases run."""

    item: str
    module: str
    before: str
    after: str
    test: str

    def mutant(self) -> Mutant:
        """The mistake in the module as it is now."""
        source = (ROOT / "src" / "rankstream" / self.module).read_text()
        if source.count(self.before) != 1:
            raise LookupError(f"{self.module} has {self.before!r} {source.count(self.before)} times, not once.")
        start = len(source[: source.index(self.before)].encode())
        stop, line = start + len(self.before.encode()), source[: source.index(self.before)].count("\n") + 1
        return Mutant(self.module, Mutation(start, stop, line, self.before, self.after))


SMALL, DECIDE = "tests/project/test_small_mistakes.py", "tests/decide/test_decide_referee.py"
LIMITS, DAMAGE = "tests/service/test_service_limits.py", "tests/service/test_service_damage.py"
WILD = "tests/streams/test_wild_counts.py"
PROCESSES, OUTPUTS = "tests/service/test_service_processes.py", "tests/cli/test_outputs.py"
MISTAKES = [
    Mistake(
        "a", "columns/corrective.py", "replace(before, upper=upper, dual_regret", "replace(before, dual_regret",
        f"{SMALL}::test_a_smaller_model_is_certified_at_its_own_distance",
    ),
    Mistake(
        "b", "oracles/tables/dense.py", "return 1.001 * HALF_UNIT", "return 0.1001 * HALF_UNIT",
        f"{SMALL}::test_the_margin_of_single_precision_covers_every_rounding",
    ),
    Mistake(
        "c", "columns/lower_bound.py", "if (self.normal[weights <= 0.0] != 0.0).any():", "if False:",
        f"{SMALL}::test_a_half_space_proves_nothing_with_the_help_of_an_offer_without_weight",
    ),
    Mistake(
        "d", "streams/proofs.py", "return offers.offers[: len(self._offers)] == self._offers", "return True",
        f"{SMALL}::test_a_half_space_of_other_offers_is_not_held_against_these",
    ),
    Mistake(
        "e", "service/processes/learner.py", "if saved.position > row.records and not self.store.is_shared:",
        "if False:",
        f"{SMALL}::test_a_state_that_is_ahead_of_the_log_is_not_resumed",
    ),
    Mistake(
        "f", "streams/background.py", "self._changed |= ", "self._changed = ",
        f"{SMALL}::test_a_change_is_remembered_until_the_next_job",
    ),
    Mistake(
        "g", "streams/background.py", "            self.dense.choices = choices", "            pass",
        f"{SMALL}::test_choices_that_arrive_while_a_model_is_made_count_towards_the_next",
    ),
    Mistake(
        "h", "decide/next.py", "middle.values + optimism * spread", "middle.values - optimism * spread",
        f"{DECIDE}::test_ucb_adds_standard_deviations_and_takes_the_best_of_all_offers",
    ),
    Mistake(
        "i", "estimation/intervals.py", "        spread = error**2 + shift**2", "        spread = error**2",
        f"{SMALL}::test_an_interval_is_as_wide_as_errors_and_shift_together",
    ),
    Mistake(
        "j", "data/item_changes.py", "* families * len(cells.items))", "* families)",
        f"{SMALL}::test_items_are_tested_at_a_level_for_all_of_them",
    ),
    Mistake(
        "k", "models/entropy/trust.py", " - abs(place - begin)", "",
        f"{SMALL}::test_a_step_of_trust_has_to_gain_a_nat",
    ),
    Mistake(
        "l", "models/entropy/guides.py", "weights = np.exp(heights - heights.max())", "weights = np.ones(len(heights))",
        f"{SMALL}::test_ends_of_a_climb_count_by_their_likelihood",
    ),
    Mistake(
        "m", "estimation/many/pooling.py", "TRIED) / float(counts.observations)", "TRIED)",
        f"{SMALL}::test_markets_of_a_pool_count_the_same_however_large",
    ),
    Mistake(
        "n", "streams/proofs.py", "if lower <= proven.lower:", "if lower >= proven.lower:",
        f"{SMALL}::test_the_stronger_of_rounds_and_half_space_is_proven",
    ),
    Mistake(
        "1", "decide/engines/logit.py", "and not problem.rows.limits.size", "",
        f"{DECIDE}::test_a_large_logit_keeps_to_the_changes_that_are_allowed",
    ),
    Mistake(
        "1", "decide/offer_values.py", "if not problem.is_feasible(mask):", "if False:",
        f"{DECIDE}::test_an_engine_that_is_wrong_is_an_error",
    ),
    Mistake(
        "1", "decide/offer_values.py", "if not abs(stated - predicted) <= close:", "if False:",
        f"{DECIDE}::test_an_engine_that_is_wrong_is_an_error",
    ),
    Mistake(
        "1", "decide/safe.py", "    verify_feasible(problem, [offer], engine)\n", "",
        f"{DECIDE}::test_the_safe_offer_is_verified",
    ),
    Mistake(
        "2", "data/observations.py", "    return chosen[np.array(impossible, dtype=np.bool_)]", "    return chosen[:0]",
        "tests/estimation/test_order_contradictions.py",
    ),
    Mistake(
        "3", "distances/norms.py", "self.lift(vertex - frequencies)[np.tile(seen, 2)]",
        "self.lift(vertex - frequencies)",
        "tests/certificate/test_certificate.py::test_offers_that_nobody_has_seen_do_not_count",
    ),
    Mistake(
        "4", "models/entropy/ensemble.py", "max(MIN_FIT_STEPS, 4 * left // (FOLD_EM_STARTS * fits))", "MAX_ROUNDS",
        f"{WILD}::test_steps_that_are_left_are_shared_by_the_fits",
    ),
    Mistake(
        "4", "models/entropy/ensemble.py", "FOLD_EM_STARTS, FOLD_NATS, watch, max_rounds=most",
        "FOLD_EM_STARTS, FOLD_NATS, watch", f"{WILD}::test_a_priced_market_of_wild_counts_takes_few_steps",
    ),
    Mistake(
        "5", "streams/detector.py",
        "if self.restarted is None or self.since > self.restarted + self.settings.half_life:", "if True:",
        "tests/streams/test_detector.py::test_one_change_is_one_alarm",
    ),
    Mistake(
        "6", "models/entropy/model.py",
        "        picks = [list(pair) for pair in combinations([*others.tolist(), *always], 2)]\n"
        "        sizes = np.resize(np.arange(1, len(others) + 1), N_RANDOM_OFFERS).tolist()\n"
        "        for more in (always, []):",
        "        picks = []\n"
        "        sizes = np.resize(np.arange(1, len(others) + 1), N_RANDOM_OFFERS).tolist()\n"
        "        for more in (always,):",
        "tests/models/test_entropy.py::test_to_rankings_keeps_the_probabilities_without_the_no_choice_item",
    ),
    Mistake(
        "7", "data/simulate.py", "min(n_test, max(1, available))", "n_test",
        "tests/data/test_simulate.py::test_a_small_market_is_tested_on_all_offers_there_are",
    ),
    Mistake(
        "8", "service/http/guard.py",
        'tokens.check(headers.get("authorization"), RIGHTS[word], market)\n                return "body"',
        'return "body"', f"{LIMITS}::test_the_token_is_checked_before_the_body",
    ),
    Mistake(
        "8", "service/http/schemas.py", "Pairs = Annotated[list[Pair], Field(max_length=MAX_LIST, fail_fast=True)]",
        "Pairs = Annotated[list[Pair], Field(max_length=MAX_LIST)]",
        f"{LIMITS}::test_a_list_is_refused_at_its_first_mistake",
    ),
    Mistake(
        "8", "service/processes/batch_reader.py", 'if lines and body.count(b"\\n") > limits.records:', "if False:",
        f"{LIMITS}::test_records_are_counted_before_they_are_parsed",
    ),
    Mistake(
        "9", "service/processes/supervisor.py", "except (OSError, MemoryError, subprocess.SubprocessError) as error:",
        "except MemoryError as error:", f"{PROCESSES}::test_a_learner_that_cannot_be_started_is_tried_again",
    ),
    Mistake(
        "10", "service/journal.py", "with suppress(OSError, ValueError, AttributeError):", "with suppress(OSError):",
        f"{PROCESSES}::test_a_line_that_cannot_be_written_is_dropped",
    ),
    Mistake(
        "10", "service/journal.py", "        if takes_more():\n", "        if True:\n",
        f"{PROCESSES}::test_a_line_that_cannot_be_written_is_dropped",
    ),
    Mistake(
        "11", "service/storage/ingest.py", "if self._written_bytes > MAX_WRITTEN_BYTES:", "if False:",
        f"{LIMITS}::test_one_offer_in_many_orders_is_remembered_once",
    ),
    Mistake(
        "11", "service/hub.py", "while self._predicted_bytes > self.limits.cache:", "while False:",
        f"{LIMITS}::test_one_offer_in_many_orders_is_predicted_once",
    ),
    Mistake(
        "11", "service/storage/ingest.py", 'limits.check("market_items", len(self.items))', "pass",
        f"{LIMITS}::test_items_of_a_market_are_limited",
    ),
    Mistake(
        "11", "service/processes/learner.py", "followed.rests_until = time.monotonic() + took if took > EVERY else 0.0",
        "pass", "tests/service/test_service_turns.py::test_a_slow_market_lets_others_have_their_turns",
    ),
    Mistake(
        "11", "service/http/guard.py",
        'self.service.limits.check("bodies", self.large + body.size - body.counted)', "pass",
        f"{LIMITS}::test_large_bodies_share_their_memory",
    ),
    Mistake(
        "11", "service/run.py", "min(untrusted,", "max(untrusted,",
        "tests/service/test_service_connections.py::test_the_oldest_connection_without_a_token_makes_room",
    ),
    Mistake(
        "12", "service/storage/database.py", "            path.chmod(0o600)  # written", "            pass  # written",
        f"{OUTPUTS}::test_everything_of_a_service_is_its_owners_alone",
    ),
    Mistake(
        "12", "service/storage/maintenance.py", "whole_file(out, mode=0o600)", "whole_file(out)",
        f"{OUTPUTS}::test_a_backup_is_private_from_its_first_byte",
    ),
    Mistake(
        "13", "service/hub.py",
        "await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._probe)), PROBE_TIMEOUT)", "pass",
        f"{DAMAGE}::test_a_full_disk_is_not_ready",
    ),
    Mistake(
        "14", "service/storage/publication.py", "and epoch == row.epoch and position > row.records:", "and False:",
        f"{DAMAGE}::test_a_log_that_is_older_than_the_state_is_refused",
    ),
    Mistake(
        "15", "service/storage/tokens.py", "except sqlite3.Error as error:", "except MemoryError as error:",
        f"{OUTPUTS}::test_databases_that_cannot_be_used",
    ),
    Mistake(
        "15", "cli/app.py", 'if type(error).__module__ != "sqlite3":', "if True:",
        f"{OUTPUTS}::test_databases_that_cannot_be_used",
    ),
    Mistake(
        "16", "_core/files.py", "if target.exists() and not target.is_file():", "if False:",
        f"{OUTPUTS}::test_a_device_stays",
    ),
    Mistake(
        "16", "_core/files.py", "    if reserved:\n", "    if False:\n",
        f"{OUTPUTS}::test_outputs_replace_no_pipe_and_no_database",
    ),
    Mistake(
        "17", "service/processes/supervisor.py", "max(0.0, self._ended_at + timeout - time.monotonic())", "timeout",
        f"{PROCESSES}::test_the_learner_has_its_seconds_once",
    ),
    Mistake(
        "18", "streams/pace.py", "oracles.auto(offers, seed=seed, memory=PROGRAM_BYTES)",
        "oracles.auto(offers, seed=seed)",
        "tests/streams/test_streams_growing.py::test_a_stream_has_no_table_that_leaves_no_memory_to_others",
    ),
    Mistake(
        "18", "streams/pace.py", "*tie_rule(run.solver.oracle), memory=PROGRAM_BYTES", "*tie_rule(run.solver.oracle)",
        "tests/streams/test_streams_growing.py::test_a_stream_has_no_table_that_leaves_no_memory_to_others",
    ),
    Mistake(
        "18", "service/processes/learner.py", "resident_memory() <= MAX_MEMORY", "resident_memory() > 0.0",
        "tests/service/test_service_turns.py::test_markets_leave_memory_where_it_is_little",
    ),
    Mistake(
        "18", "streams/entropy_follower.py", "self.model.exact_probabilities(offers, max_states)",
        "self.model.probabilities(offers)",
        "tests/streams/test_entropy_follower.py::test_offers_beyond_the_program_count_at_their_worst_until_the_next_refresh",
    ),
    Mistake(
        "19", "streams/live.py", "    @locked\n    def observe(", "    def observe(",
        "tests/streams/test_shared_by_threads.py",
    ),
    Mistake(
        "19", "streams/live.py", "vars(self).update(state, lock=RLock())", "vars(self).update(state)",
        "tests/streams/test_shared_by_threads.py::test_a_copy_of_a_live_model_has_a_lock_of_its_own",
    ),
    Mistake(
        "20", "service/storage/tokens.py", ' or name in (".", "..")', "",
        f"{LIMITS}::test_names_that_no_market_can_have",
    ),
    Mistake(
        "20", "service/http/read_routes.py", "        service.listeners += 1\n        self.service",
        "        self.service",
        f"{LIMITS}::test_listeners_are_counted_when_they_arrive",
    ),
    Mistake(
        "20", "service/http/guard.py", 'headers.setdefault("X-Content-Type-Options", "nosniff")', "pass",
        f"{LIMITS}::test_every_answer_forbids_guessing_and_keeping",
    ),
    Mistake(
        "20", "data/readers/sources/database.py", "{token_hex(16)}", "spilled",
        "tests/data/test_readers_hostile.py::test_nobody_can_guess_where_rows_are_spilled",
    ),
]  # fmt: skip


def main() -> None:
    """Put the mistakes back and print which tests failed; exit with 1 if one did not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("items", nargs="*", help="letters and numbers of the table; all without any")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "known", help="a folder for the copy")
    given = parser.parse_args()
    some = [mistake for mistake in MISTAKES if not given.items or mistake.item in given.items]
    mutants = [mistake.mutant() for mistake in some]
    copy, missed = Copy(given.work / "copy", SECONDS), 0
    files = sorted({mistake.test.partition("::")[0] for mistake in some})
    copy.tests = {True: Collection(copy.folder, True, files)}
    for mistake, mutant in zip(some, mutants, strict=True):
        tests = [
            one for one in copy.tests[True].tests if mistake.test in (one.partition("::")[0], one.partition("[")[0])
        ]
        found = copy.run(tests, True, SECONDS, mutant)
        passes = not found.failed or copy.passes(found.failed, True).code == 0
        is_seen = bool(found.code) and passes
        missed += not is_seen
        print(f"{mistake.item:<3} {'fails' if is_seen else 'PASSES':<7}{found.failed or mistake.test}", flush=True)
    copy.close()
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()

"""bench/triton_suite: which tests Triton runs first, and what is said of failures that it did not run."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/triton_suite"))
import run


def record(outcome, last="", refused=(), broken=""):
    return {
        "outcome": outcome, "last": last, "where": "test_x.py:1", "compiled": 1, "errors": [], "refused": list(refused),
        "launches": 1, "reads": [], "reads_ptx": False, "compiling": 0.5, "seconds": 1.0, "broken": broken
    }


OURS = {
    "passes": record("passed"), "expected": record("xfailed"), "refused": record("failed", refused=["no such op"]),
    "skipped": record("skipped"), "crash": record("failed", broken="the process ends with -11"),
    "wrong": record("failed", last="AssertionError: 1 != 2"), "passes too": record("passed"),
    "error": record("error", last="TypeError: no")
}


class Suite(unittest.TestCase):

    def test_triton_runs_failures_first_and_wrong_results_before_all(self):
        self.assertEqual(run.to_compare(OURS, None),
                         ["wrong", "crash", "error", "refused", "expected", "passes", "passes too"])
        self.assertEqual(run.to_compare(OURS, 1)[-2:], ["expected", "passes"])

    def test_failures_that_triton_did_not_run_are_named(self):
        tests = {n: {"kiln": r} for n, r in OURS.items()}
        tests["wrong"]["triton"] = record("passed")
        for t in tests.values(): t["kind"] = run.kind_of(t)
        self.assertEqual([t["kind"] for n, t in tests.items() if n in ("wrong", "crash", "expected")],
                         ["xfailed", "not compared", "counts"])
        text = run.summary({"tests": tests, "size": 8, "total": 8, "seconds": [1, 2]})
        self.assertIn("not compared: 3 fail with Kiln, and no time was left to run them under Triton", text)
        self.assertIn("refused 1 x no such op\n      refused test_x.py:1", text)
        self.assertIn("crash 1 x the process ends with -11", text)
        self.assertIn("error 1 x TypeError: no", text)

    def test_without_a_gpu_tests_that_end_otherwise_are_named(self):
        raises, not_raised = record("passed"), record("passed", last="Failed: DID NOT RAISE CompilationError")
        not_raised["ended"], raises["ended"] = "failed", "passed"
        wrong = [{**record("passed", last=f"AssertionError: {v} != 2e-5 at 0x7f{i}"), "ended": "failed"}
                 for i, v in enumerate((0.0, "nan"))]
        tests = {"t1": {"kiln": not_raised, "triton": raises, "kind": "counts"},
                 "t2": {"kiln": wrong[0], "triton": wrong[1], "kind": "counts"}}
        text = run.summary({"tests": tests, "size": 2, "total": 2, "seconds": [1, 2], "pretend": True})
        self.assertIn("though nothing computes: 1\n      t1 ", text)
        self.assertNotIn("t2", text)

    def test_nothing_is_said_where_all_were_compared(self):
        tests = {"passes": {"kiln": OURS["passes"], "kind": "counts"}}
        self.assertNotIn("not compared", run.summary({"tests": tests, "size": 1, "total": 1, "seconds": [1, 2]}))


if __name__ == "__main__":
    unittest.main()

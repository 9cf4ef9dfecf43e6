import sys, unittest, logging, warnings


class Base(unittest.TestCase):
    made = []

    @classmethod
    def setUpClass(cls):
        cls.made.append(cls.__name__)

    def setUp(self):
        self.items = [1, 2]

    def tearDown(self):
        self.items = None


class TestMore(Base):
    def test_equal(self):
        """Says what it is."""
        self.assertEqual(self.items, [1, 2])
        self.assertAlmostEqual(0.1 + 0.2, 0.3)
        self.assertAlmostEqual(1.0, 1.05, delta=0.1)
        self.assertCountEqual([1, 2, 2], [2, 1, 2])
        self.assertRegex("abc", "b.")
        self.assertIsInstance(1, int)
        self.assertDictEqual({"a": 1}, {"a": 1})
        self.assertListEqual([1], [1])
        self.assertGreaterEqual(2, 2)

    def test_raises(self):
        with self.assertRaises(ZeroDivisionError) as caught:
            1 / 0
        self.assertIsInstance(caught.exception, ArithmeticError)
        self.assertRaises(ValueError, int, "x")
        with self.assertRaisesRegex(ValueError, "b.d"):
            raise ValueError("a bad thing")

    def test_logs(self):
        with self.assertLogs("here", level="INFO") as logs:
            logging.getLogger("here").info("said %d", 3)
        self.assertEqual(logs.output, ["INFO:here:said 3"])
        with self.assertWarns(DeprecationWarning):
            warnings.warn("old", DeprecationWarning)

    def test_sub(self):
        for i in range(4):
            with self.subTest("part", i=i):
                self.assertNotEqual(i % 2, 1)

    def test_fails(self):
        self.assertEqual(1, 2, "numbers")

    def test_error(self):
        {}["missing"]

    @unittest.skip("later")
    def test_skipped(self):
        self.fail()

    @unittest.skipIf(sys.version_info < (3,), "old")
    def test_not_skipped(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.fail("as told")

    @unittest.expectedFailure
    def test_unexpected(self):
        pass

    def test_skip_inside(self):
        self.skipTest("no GPU")

    def test_cleanup(self):
        self.addCleanup(self.made.append, "cleaned")


@unittest.skipUnless(False, "whole class")
class TestNone(Base):
    def test_a(self):
        pass


class TestBroken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("cannot begin")

    def test_a(self):
        pass


class TestSetUp(unittest.TestCase):
    def setUp(self):
        raise RuntimeError("no set-up")

    def tearDown(self):
        print("never")

    def test_a(self):
        print("never")


class Stream:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def writeln(self, text=""):
        self.write(text + "\n")

    def flush(self):
        pass


def masked(text):
    import re
    text = re.sub(r"in \d+\.\d+s", "in Ts", text)
    kept, inside = [], False
    for line in text.split("\n"):
        if line.startswith("Traceback"):
            inside = True
        elif inside and line and not line.startswith(" "):
            inside = False
        if not inside:
            kept.append(line)
    return "\n".join(kept)


if __name__ == "__main__":
    for verbosity in (1, 2, 0):
        out = Stream()
        suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
        result = unittest.TextTestRunner(out, verbosity=verbosity).run(suite)
        print(masked(out.text))
        print(result.testsRun, len(result.failures), len(result.errors), result.wasSuccessful())
    print(Base.made)
    one = unittest.TestSuite()
    one.addTest(TestMore("test_equal"))
    print(unittest.TextTestRunner(Stream()).run(one).wasSuccessful(), one.countTestCases())
    out = Stream()
    program = unittest.main(argv=["x", "TestMore.test_equal", "TestMore.test_raises"], exit=False,
                            testRunner=unittest.TextTestRunner(out))
    print(masked(out.text), program.result.testsRun)
    try:
        unittest.main(argv=["x", "-k", "equal", "-q"], testRunner=unittest.TextTestRunner(Stream()))
    except SystemExit as e:
        print("exit", e.code)

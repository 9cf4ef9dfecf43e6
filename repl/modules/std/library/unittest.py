"""unittest: tests as methods of classes."""
import fnmatch as _fnmatch
import sys as _sys
import time as _time
import traceback as _traceback
import types as _types
import warnings as _warnings


class SkipTest(Exception):
    pass


def skip(reason):
    def mark(test):
        test.__unittest_skip__ = True
        test.__unittest_skip_why__ = "" if callable(reason) else reason
        return test

    # @skip without a reason
    return mark(reason) if callable(reason) else mark


def skipIf(condition, reason):
    return skip(reason) if condition else lambda test: test


def skipUnless(condition, reason):
    return skipIf(not condition, reason)


def expectedFailure(test):
    test.__unittest_expecting_failure__ = True
    return test


class _Raises:
    """What `with self.assertRaises(…)` stands in."""

    def __init__(self, test, expected, pattern=None, msg=None, kind="raised"):
        self.test, self.expected, self.pattern, self.msg, self.kind = test, expected, pattern, msg, kind

    def names(self):
        of = self.expected if isinstance(self.expected, tuple) else (self.expected,)
        return " or ".join(e.__name__ for e in of)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.test.fail(self.test._formatMessage(self.msg, f"{self.names()} not raised"))
        if not issubclass(kind, self.expected):
            return False
        self.exception = value
        if self.pattern is not None:
            _check_pattern(self.test, self.pattern, str(value), self.msg)
        return True


class _Warns(_Raises):
    def __enter__(self):
        self._catch = _warnings.catch_warnings(record=True)
        self.warnings = self._catch.__enter__()
        _warnings.simplefilter("always")
        return self

    def __exit__(self, kind, value, traceback):
        self._catch.__exit__(kind, value, traceback)
        if kind is not None:
            return False
        for given in self.warnings:
            if issubclass(given.category, self.expected):
                self.warning = given.message
                if self.pattern is not None:
                    _check_pattern(self.test, self.pattern, str(given.message), self.msg)
                return True
        self.test.fail(self.test._formatMessage(self.msg, f"{self.names()} not triggered"))


def _check_pattern(test, pattern, text, msg):
    import re

    if not re.search(pattern, text):
        shown = pattern if isinstance(pattern, str) else pattern.pattern
        test.fail(test._formatMessage(msg, f'"{shown}" does not match "{text}"'))


class _Logs:
    def __init__(self, test, logger, level):
        import logging

        self.test, self._logging = test, logging
        self.logger = logger if isinstance(logger, logging.Logger) else logging.getLogger(logger)
        self.level = logging.INFO if level is None else level if isinstance(level, int) else getattr(logging, level)
        self.records, self.output = [], []

    def __enter__(self):
        logs = self

        class Kept(self._logging.Handler):
            def emit(self, record):
                logs.records.append(record)
                logs.output.append(f"{record.levelname}:{record.name}:{record.getMessage()}")

        self._before = self.logger.handlers, self.logger.level, self.logger.propagate
        kept = Kept()
        kept.setLevel(self.level)
        self.logger.handlers, self.logger.propagate = [kept], False
        self.logger.setLevel(self.level)
        return self

    def __exit__(self, kind, value, traceback):
        self.logger.handlers, self.logger.propagate = self._before[0], self._before[2]
        self.logger.setLevel(self._before[1])
        if kind is None and not self.records:
            self.test.fail(f"no logs of level {self._logging.getLevelName(self.level)} or higher triggered on "
                           f"{self.logger.name}")
        return False


class _SubTest:
    def __init__(self, test, what):
        self.test, self.what = test, what

    def __enter__(self):
        return None

    def __exit__(self, kind, value, traceback):
        result = self.test._result
        if kind is None or result is None or not issubclass(kind, Exception):
            return False
        if issubclass(kind, SkipTest):
            result.addSkip(self.test, str(value))
            return True
        result._add_problem(_SubTestCase(self.test, self.what), kind, value)
        return not result.failfast


class _SubTestCase:
    """A test that failed within `with self.subTest(…)`, as results name it."""

    def __init__(self, test, what):
        self.test, self.what = test, what
        self.failureException = test.failureException

    def __str__(self):
        return f"{self.test} {self.what}"


class TestCase:
    failureException = AssertionError
    longMessage = True
    maxDiff = 640

    def __init__(self, methodName="runTest"):
        self._testMethodName = methodName
        if methodName != "runTest" and not hasattr(self, methodName):
            raise ValueError(f"no such test method in {type(self)}: {methodName}")
        self._cleanups, self._result = [], None

    def setUp(self):
        pass

    def tearDown(self):
        pass

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def addCleanup(self, function, *args, **kwargs):
        self._cleanups.append((function, args, kwargs))

    def enterContext(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def doCleanups(self):
        while self._cleanups:
            function, args, kwargs = self._cleanups.pop()
            function(*args, **kwargs)

    def countTestCases(self):
        return 1

    def id(self):
        return f"{type(self).__module__}.{type(self).__qualname__}.{self._testMethodName}"

    def shortDescription(self):
        doc = getattr(self, self._testMethodName).__doc__
        return doc.strip().split("\n")[0].strip() if doc else None

    def __str__(self):
        return f"{self._testMethodName} ({self.id()})"

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__qualname__} testMethod={self._testMethodName}>"

    def subTest(self, msg=None, **params):
        what = " ".join(([f"[{msg}]"] if msg is not None else [])
                        + (["(" + ", ".join(f"{k}={v!r}" for k, v in params.items()) + ")"] if params else []))
        return _SubTest(self, what or "(<subtest>)")

    def skipTest(self, reason):
        raise SkipTest(reason)

    def fail(self, msg=None):
        raise self.failureException(msg)

    def debug(self):
        self.setUp()
        getattr(self, self._testMethodName)()
        self.tearDown()
        self.doCleanups()

    def __call__(self, result=None):
        return self.run(result)

    def run(self, result=None):
        result = TestResult() if result is None else result
        self._result = result
        result.startTest(self)
        method = getattr(self, self._testMethodName)
        for marked in (type(self), method):
            if getattr(marked, "__unittest_skip__", False):
                result.addSkip(self, marked.__unittest_skip_why__)
                result.stopTest(self)
                return result
        wrong = result._problems
        expecting = getattr(method, "__unittest_expecting_failure__", False) \
            or getattr(type(self), "__unittest_expecting_failure__", False)
        skipped, failed = False, None
        steps = [self.setUp, method, self.tearDown]
        for step in steps:
            # What setUp began, tearDown ends, unless setUp failed itself.
            if step is not self.tearDown and (skipped or failed):
                continue
            if step is self.tearDown and steps[0] is None:
                continue
            try:
                step()
            except SkipTest as e:
                result.addSkip(self, str(e))
                skipped = True
            except Exception as e:
                if step is method and expecting:
                    failed = e
                    continue
                failed = e
                result._add_problem(self, type(e), e)
            if step is not method and (skipped or failed) and steps[0] is step:
                steps[0] = None
        while self._cleanups:
            try:
                self.doCleanups()
            except Exception as e:
                failed = e
                result._add_problem(self, type(e), e)
        if result._problems == wrong and not skipped:
            if expecting:
                (result.addExpectedFailure(self, failed) if failed else result.addUnexpectedSuccess(self))
            else:
                result.addSuccess(self)
        result.stopTest(self)
        return result

    # --- what tests ask for
    def _formatMessage(self, msg, standard):
        if not self.longMessage:
            return msg or standard
        return standard if msg is None else f"{standard} : {msg}"

    def _check(self, holds, standard, msg):
        if not holds:
            self.fail(self._formatMessage(msg, standard))

    def assertTrue(self, expr, msg=None):
        self._check(expr, f"{expr!r} is not true", msg)

    def assertFalse(self, expr, msg=None):
        self._check(not expr, f"{expr!r} is not false", msg)

    def assertEqual(self, first, second, msg=None):
        self._check(first == second, f"{first!r} != {second!r}", msg)

    def assertNotEqual(self, first, second, msg=None):
        self._check(first != second, f"{first!r} == {second!r}", msg)

    def assertIs(self, first, second, msg=None):
        self._check(first is second, f"{first!r} is not {second!r}", msg)

    def assertIsNot(self, first, second, msg=None):
        self._check(first is not second, f"unexpectedly identical: {first!r}", msg)

    def assertIsNone(self, obj, msg=None):
        self._check(obj is None, f"{obj!r} is not None", msg)

    def assertIsNotNone(self, obj, msg=None):
        self._check(obj is not None, "unexpectedly None", msg)

    def assertIn(self, member, container, msg=None):
        self._check(member in container, f"{member!r} not found in {container!r}", msg)

    def assertNotIn(self, member, container, msg=None):
        self._check(member not in container, f"{member!r} unexpectedly found in {container!r}", msg)

    def assertIsInstance(self, obj, cls, msg=None):
        self._check(isinstance(obj, cls), f"{obj!r} is not an instance of {cls!r}", msg)

    def assertNotIsInstance(self, obj, cls, msg=None):
        self._check(not isinstance(obj, cls), f"{obj!r} is an instance of {cls!r}", msg)

    def assertGreater(self, a, b, msg=None):
        self._check(a > b, f"{a!r} not greater than {b!r}", msg)

    def assertGreaterEqual(self, a, b, msg=None):
        self._check(a >= b, f"{a!r} not greater than or equal to {b!r}", msg)

    def assertLess(self, a, b, msg=None):
        self._check(a < b, f"{a!r} not less than {b!r}", msg)

    def assertLessEqual(self, a, b, msg=None):
        self._check(a <= b, f"{a!r} not less than or equal to {b!r}", msg)

    def _near(self, first, second, places, delta):
        if places is not None and delta is not None:
            raise TypeError("specify delta or places not both")
        apart = abs(first - second)
        if delta is not None:
            return apart <= delta, f"within {delta!r} delta ({apart!r} difference)"
        places = 7 if places is None else places
        return round(apart, places) == 0, f"within {places!r} places ({apart!r} difference)"

    def assertAlmostEqual(self, first, second, places=None, msg=None, delta=None):
        if first == second:
            return
        near, how = self._near(first, second, places, delta)
        self._check(near, f"{first!r} != {second!r} {how}", msg)

    def assertNotAlmostEqual(self, first, second, places=None, msg=None, delta=None):
        near, how = self._near(first, second, places, delta)
        self._check(first != second and not near, f"{first!r} == {second!r} {how.split(' (')[0]}", msg)

    def assertSequenceEqual(self, first, second, msg=None, seq_type=None):
        if seq_type is not None:
            for which, value in (("First", first), ("Second", second)):
                self._check(isinstance(value, seq_type),
                            f"{which} sequence is not a {seq_type.__name__}: {value!r}", msg)
        self._check(len(first) == len(second) and all(a == b for a, b in zip(first, second)),
                    f"{first!r} != {second!r}", msg)

    def assertListEqual(self, first, second, msg=None):
        self.assertSequenceEqual(first, second, msg, list)

    def assertTupleEqual(self, first, second, msg=None):
        self.assertSequenceEqual(first, second, msg, tuple)

    def assertSetEqual(self, first, second, msg=None):
        self.assertEqual(set(first), set(second), msg)

    def assertDictEqual(self, first, second, msg=None):
        self.assertIsInstance(first, dict, "First argument is not a dictionary")
        self.assertIsInstance(second, dict, "Second argument is not a dictionary")
        self.assertEqual(first, second, msg)

    def assertMultiLineEqual(self, first, second, msg=None):
        self.assertEqual(first, second, msg)

    def assertCountEqual(self, first, second, msg=None):
        left, missing = list(second), []
        for item in first:
            if item in left:
                left.remove(item)
            else:
                missing.append(item)
        self._check(not left and not missing, "Element counts were not equal: "
                    f"only in the first: {missing!r}, only in the second: {left!r}", msg)

    def assertRegex(self, text, expected_regex, msg=None):
        import re

        self._check(re.search(expected_regex, text),
                    f"Regex didn't match: {expected_regex!r} not found in {text!r}", msg)

    def assertNotRegex(self, text, unexpected_regex, msg=None):
        import re

        self._check(not re.search(unexpected_regex, text),
                    f"Regex matched: {unexpected_regex!r} matches in {text!r}", msg)

    def _expect(self, context, args, kwargs):
        if not args:
            return context
        function, *rest = args
        with context:
            function(*rest, **kwargs)

    def assertRaises(self, expected_exception, *args, msg=None, **kwargs):
        return self._expect(_Raises(self, expected_exception, None, msg), args, kwargs)

    def assertRaisesRegex(self, expected_exception, expected_regex, *args, msg=None, **kwargs):
        return self._expect(_Raises(self, expected_exception, expected_regex, msg), args, kwargs)

    def assertWarns(self, expected_warning, *args, msg=None, **kwargs):
        return self._expect(_Warns(self, expected_warning, None, msg), args, kwargs)

    def assertWarnsRegex(self, expected_warning, expected_regex, *args, msg=None, **kwargs):
        return self._expect(_Warns(self, expected_warning, expected_regex, msg), args, kwargs)

    def assertLogs(self, logger=None, level=None):
        return _Logs(self, logger, level)


class FunctionTestCase(TestCase):
    def __init__(self, testFunc, setUp=None, tearDown=None, description=None):
        self._function, self._before, self._behind, self._description = testFunc, setUp, tearDown, description
        super().__init__()

    def runTest(self):
        if self._before:
            self._before()
        try:
            self._function()
        finally:
            if self._behind:
                self._behind()

    def id(self):
        return self._function.__name__

    def __str__(self):
        return f"unittest.case.FunctionTestCase ({self._function.__name__})"


class TestResult:
    def __init__(self, stream=None, descriptions=None, verbosity=None):
        self.failures, self.errors, self.skipped = [], [], []
        self.expectedFailures, self.unexpectedSuccesses = [], []
        self.testsRun, self.shouldStop, self.failfast, self._problems = 0, False, False, 0

    def startTest(self, test):
        self.testsRun += 1

    def stopTest(self, test):
        pass

    def stop(self):
        self.shouldStop = True

    def wasSuccessful(self):
        return not self.failures and not self.errors and not self.unexpectedSuccesses

    def addSuccess(self, test):
        pass

    def addError(self, test, err):
        self.errors.append((test, err))

    def addFailure(self, test, err):
        self.failures.append((test, err))

    def addSkip(self, test, reason):
        self.skipped.append((test, reason))

    def addExpectedFailure(self, test, err):
        self.expectedFailures.append((test, str(err)))

    def addUnexpectedSuccess(self, test):
        self.unexpectedSuccesses.append(test)

    def _add_problem(self, test, kind, value):
        self._problems += 1
        text = "".join(_traceback.format_exception(kind, value, None))
        if issubclass(kind, test.failureException):
            self.addFailure(test, text)
        else:
            self.addError(test, text)
        if self.failfast:
            self.stop()


class TextTestResult(TestResult):
    def __init__(self, stream=None, descriptions=True, verbosity=1):
        super().__init__()
        self.stream, self.descriptions, self.verbosity = stream or _sys.stderr, descriptions, verbosity
        self._at_start = True

    def getDescription(self, test):
        first = test.shortDescription() if self.descriptions and hasattr(test, "shortDescription") else None
        return f"{test}\n{first}" if first else str(test)

    def _say(self, test, letter, word):
        if self.verbosity > 1:
            part = isinstance(test, _SubTestCase)
            if part or self._at_start:
                # Not what the line names that startTest() began.
                start = "" if self._at_start else "\n"
                self.stream.write(start + ("  " if part else "") + self.getDescription(test) + " ... ")
            self.stream.write(word + "\n")
            self._at_start = True
        elif self.verbosity == 1:
            self.stream.write(letter)

    def startTest(self, test):
        super().startTest(test)
        if self.verbosity > 1:
            self.stream.write(self.getDescription(test) + " ... ")
            self._at_start = False

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say(test, ".", "ok")

    def addError(self, test, err):
        super().addError(test, err)
        self._say(test, "E", "ERROR")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say(test, "F", "FAIL")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say(test, "s", f"skipped {reason!r}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._say(test, "x", "expected failure")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._say(test, "u", "unexpected success")

    def printErrors(self):
        if self.verbosity:
            self.stream.write("\n")
        for name, problems in (("ERROR", self.errors), ("FAIL", self.failures)):
            for test, err in problems:
                self.stream.write("=" * 70 + f"\n{name}: {self.getDescription(test)}\n" + "-" * 70 + f"\n{err}\n")
        for test in self.unexpectedSuccesses:
            self.stream.write("=" * 70 + f"\nUNEXPECTED SUCCESS: {self.getDescription(test)}\n")


class TestSuite:
    def __init__(self, tests=()):
        self._tests = []
        self.addTests(tests)

    def __iter__(self):
        return iter(self._tests)

    def addTest(self, test):
        self._tests.append(test)

    def addTests(self, tests):
        for test in tests:
            self.addTest(test)

    def countTestCases(self):
        return sum(t.countTestCases() for t in self._tests)

    def _cases(self):
        for test in self._tests:
            if isinstance(test, TestSuite):
                yield from test._cases()
            else:
                yield test

    def run(self, result):
        current, usable = None, True
        for test in list(self._cases()):
            if result.shouldStop:
                break
            if type(test) is not current:
                self._end_class(current, usable, result)
                current = type(test)
                usable = self._begin_class(current, result)
            if usable:
                test(result)
        self._end_class(current, usable, result)
        return result

    __call__ = run

    def _begin_class(self, cls, result):
        if getattr(cls, "__unittest_skip__", False):
            return True  # each of its tests is reported
        try:
            cls.setUpClass()
        except SkipTest as e:
            result.addSkip(_ClassStep("setUpClass", cls), str(e))
            return False
        except Exception as e:
            result._add_problem(_ClassStep("setUpClass", cls), type(e), e)
            return False
        return True

    def _end_class(self, cls, usable, result):
        if cls is None or not usable or getattr(cls, "__unittest_skip__", False):
            return
        try:
            cls.tearDownClass()
        except Exception as e:
            result._add_problem(_ClassStep("tearDownClass", cls), type(e), e)


class _ClassStep:
    failureException = ()  # whatever it is, it is an error of no test

    def __init__(self, step, cls):
        self.text = f"{step} ({cls.__module__}.{cls.__qualname__})"

    def __str__(self):
        return self.text


class TestLoader:
    testMethodPrefix = "test"
    testNamePatterns = None

    def getTestCaseNames(self, testCaseClass):
        def wanted(name):
            if not name.startswith(self.testMethodPrefix) or not callable(getattr(testCaseClass, name)):
                return False
            whole = f"{testCaseClass.__module__}.{testCaseClass.__qualname__}.{name}"
            return not self.testNamePatterns or any(_fnmatch.fnmatch(whole, p) for p in self.testNamePatterns)

        return sorted(filter(wanted, dir(testCaseClass)))

    def loadTestsFromTestCase(self, testCaseClass):
        names = self.getTestCaseNames(testCaseClass)
        if not names and hasattr(testCaseClass, "runTest"):
            names = ["runTest"]
        return TestSuite([testCaseClass(name) for name in names])

    def loadTestsFromModule(self, module, *, pattern=None):
        tests = TestSuite()
        for name in sorted(dir(module)):
            found = getattr(module, name)
            if isinstance(found, type) and issubclass(found, TestCase) and found not in (TestCase, FunctionTestCase):
                tests.addTest(self.loadTestsFromTestCase(found))
        return tests

    def loadTestsFromName(self, name, module=None):
        found, cls = module, None
        if module is None:
            raise NotImplementedError("loadTestsFromName() needs module=: unittest imports no file by itself")
        for part in name.split("."):
            cls, found = found, getattr(found, part)
        if isinstance(found, _types.ModuleType):
            return self.loadTestsFromModule(found)
        if isinstance(found, type) and issubclass(found, TestCase):
            return self.loadTestsFromTestCase(found)
        if isinstance(cls, type) and issubclass(cls, TestCase):
            return TestSuite([cls(name.split(".")[-1])])
        raise TypeError(f"don't know how to make test from: {found}")

    def loadTestsFromNames(self, names, module=None):
        return TestSuite([self.loadTestsFromName(name, module) for name in names])


defaultTestLoader = TestLoader()


class TextTestRunner:
    resultclass = TextTestResult

    def __init__(self, stream=None, descriptions=True, verbosity=1, failfast=False, buffer=False, resultclass=None,
                 warnings=None, *, tb_locals=False):
        self.stream, self.descriptions, self.verbosity = stream or _sys.stderr, descriptions, verbosity
        self.failfast = failfast
        self.resultclass = resultclass or self.resultclass

    def run(self, test):
        result = self.resultclass(self.stream, self.descriptions, self.verbosity)
        result.failfast = self.failfast
        began = _time.perf_counter()
        test(result)
        seconds = _time.perf_counter() - began
        result.printErrors()
        write = self.stream.write
        write("-" * 70 + f"\nRan {result.testsRun} test{'' if result.testsRun == 1 else 's'} in {seconds:.3f}s\n\n")
        counts = [("failures", result.failures if not result.wasSuccessful() else []), ("errors", result.errors),
                  ("skipped", result.skipped), ("expected failures", result.expectedFailures),
                  ("unexpected successes", result.unexpectedSuccesses)]
        told = ", ".join(f"{name}={len(of)}" for name, of in counts if of)
        write(("OK" if result.wasSuccessful() else "FAILED") + (f" ({told})" if told else "") + "\n")
        return result


class TestProgram:
    def __init__(self, module="__main__", defaultTest=None, argv=None, testRunner=None, testLoader=None, exit=True,
                 verbosity=1, failfast=None, catchbreak=None, buffer=None, warnings=None, *, tb_locals=False):
        import argparse
        import importlib

        if isinstance(module, str):
            module = importlib.import_module(module)
        self.module, argv = module, _sys.argv if argv is None else argv
        p = argparse.ArgumentParser(prog=argv[0] if argv else "unittest")
        p.add_argument("-v", "--verbose", dest="verbosity", action="store_const", const=2, default=verbosity)
        p.add_argument("-q", "--quiet", dest="verbosity", action="store_const", const=0)
        p.add_argument("-f", "--failfast", action="store_true", default=bool(failfast), help="stop on the first one")
        p.add_argument("-k", dest="patterns", action="append", help="only tests that match the pattern or text")
        p.add_argument("-b", "--buffer", action="store_true", default=bool(buffer), help=argparse.SUPPRESS)
        p.add_argument("-c", "--catch", action="store_true", default=bool(catchbreak), help=argparse.SUPPRESS)
        p.add_argument("tests", nargs="*", help="TestClass or TestClass.test_method")
        given = p.parse_args(argv[1:])
        loader = testLoader or TestLoader()
        if given.patterns:
            loader.testNamePatterns = [k if "*" in k else f"*{k}*" for k in given.patterns]
        names = given.tests or ([defaultTest] if isinstance(defaultTest, str) else list(defaultTest or []))
        self.test = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
        runner = testRunner or TextTestRunner
        if isinstance(runner, type):
            runner = runner(verbosity=given.verbosity, failfast=given.failfast)
        self.result = runner.run(self.test)
        if exit:
            _sys.exit(not self.result.wasSuccessful())


main = TestProgram

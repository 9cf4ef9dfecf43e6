"""kiln.Session, the functions over it, and `%load_ext kiln`, on the CPU, with what arrays and IPython there are."""
import concurrent.futures
import contextlib
import copy
import functools
import gc
import importlib.util
import io
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import kiln
import kiln.language as tl
from kiln import _sources

np = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
has_ipython = importlib.util.find_spec("IPython") is not None

FACTOR = tl.constexpr(3.0)
BLOCK_SIZE = 256
unsendable = object()


@kiln.jit
def scaled(v):
    return v * FACTOR


@kiln.jit
def scale_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, scaled(tl.load(x + i, mask=i < n)), mask=i < n)


def scale(x):
    import torch
    out = torch.empty_like(x)
    scale_kernel[(-(-x.numel() // BLOCK_SIZE), )](x, out, x.numel(), BLOCK=BLOCK_SIZE)
    return out


def makes_counter(start):

    def counter(step):
        return start + step

    return counter


def makes_text():

    def text():
        return """one
        two
    three"""

    return text


def shadows_a_builtin(x):
    return 42


def defaults(size=BLOCK_SIZE, *, seven=BLOCK_SIZE // 36):
    return size, seven


def shadows(y):
    same = (lambda BLOCK_SIZE: BLOCK_SIZE)(1)
    return same + sum([BLOCK_SIZE for BLOCK_SIZE in (0, )]) + BLOCK_SIZE + y


def doubled(function):

    @functools.wraps(function)
    def inner(*args):
        return function(*args) * 2

    return inner


@doubled
def decorated(x):
    return x + BLOCK_SIZE


def plain(x):
    return x + 1


def plain_double(x):
    return x * 2


def scale_twice(x):
    return plain_double(plain_double(x))


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def countdown(n):
    return n if n < 1 else countdown(n - 1)


old_countdown = countdown


def countdown(n):
    return -1


def takes_three(function):

    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) * 3

    return wrapper


class Odd:

    def __getattr__(self, name):
        raise KeyError(name)

    @staticmethod
    def double(x):
        return x * 2


def closes_early():

    def early():
        return later

    result = early
    if not result: later = 1
    return result


def uses_what_cannot_go():
    return unsendable


def printed(call):
    with contextlib.redirect_stdout(io.StringIO()) as out: call()
    return out.getvalue()


class Sessions(unittest.TestCase):

    def setUp(self):
        self.session = kiln.Session(device="cpu")

    def test_runs_code_and_commands_as_the_prompt(self):
        # Of several values only the last is shown.
        self.assertEqual(printed(lambda: self.session.run("x = 6\nx\nx * 7")), "42\n")  # the last value, as IPython
        self.assertRegex(printed(lambda: self.session.run("x\n%who")), r"^name.*\nx\s+int\s+6")

    def test_gives_values(self):
        # What a value is in Python is what it is in the session, and back.
        for text in ("None", "True", "7", "-2.5", "'é\\n'", "[1, 2.0, 'a', None]", "{'a': [1], 'b': {}}"):
            self.assertEqual(self.session.evaluate(text), eval(text))
        for text in ("(1, (2, 3))", "[(1, '(')]", "{3: 4}", "{1, 2}", "()", "{'a': {2: (1, None)}}"):
            self.assertEqual(self.session.evaluate(text), eval(text))
        # NaN is not equal to itself, so the text is compared.
        self.assertEqual(str(self.session.evaluate("[float('nan'), float('inf')]")), "[nan, inf]")
        for value in (1j, -2.5 + 0j, b"", b"a\x00\xff'", range(0), range(5, -1, -2), set(), {1, "a"}, [1j, (b"x", {2})],
                      {"c": {1j}}, complex("inf-1j")):
            self.session["v"] = value
            self.assertEqual((found := self.session["v"]), value)
            self.assertIs(type(found), type(value))
        self.assertEqual(self.session.evaluate("abs(v) + w[0]", {"v": 3 + 4j, "w": b"a"}), 102)
        members = {1}
        # Twice: the set is handed over again, as lists are.
        for _ in range(2): self.assertEqual(self.session.evaluate("(members.add(2), members)", {"members": members})[1], {1, 2})
        self.assertEqual(members, {1})
        # Beyond 64 bits, within the 128 that a session has.
        self.assertEqual(self.session.evaluate("2 ** 70"), 2**70)
        opaque = self.session.evaluate("len")
        # What Python has no form for comes as an object that only shows itself.
        self.assertIs(type(opaque), kiln.Opaque)
        self.assertIn("len", repr(opaque))
        self.assertIs(type(self.session.evaluate("[1, len]")[1]), kiln.Opaque)

    def test_errors_have_their_place(self):
        with self.assertRaises(kiln.CommandError) as caught: self.session.run("x = 1\nx / 0")
        self.assertEqual((caught.exception.kind, caught.exception.line), ("value", 2))
        self.assertIn("division by zero", str(caught.exception))
        # What ran before the error stays.
        self.assertEqual(self.session["x"], 1)
        with self.assertRaisesRegex(kiln.CommandError, "did you mean %bench"): self.session.command("bnch 1")

    def test_devices_that_are_none(self):
        for device in ("", 0):
            with self.assertRaisesRegex(TypeError, f"kiln.Session: device is .*, got {device!r}"): kiln.Session(device)

    def test_exit_ends_the_entry_alone(self):
        self.session.run("x = 1\nexit()\nx = 2")
        self.assertEqual(self.session["x"], 1)

    def test_variables(self):
        self.session["x"] = {"a": [1, 2.5, None], "b": (True, "q'\"")}
        self.assertEqual(self.session["x"], {"a": [1, 2.5, None], "b": (True, "q'\"")})
        del self.session["x"]
        with self.assertRaises(kiln.CommandError): self.session["x"]
        with self.assertRaisesRegex(TypeError, "'x': a session takes .* not a 'builtins.object'"):
            self.session["x"] = object()
        with self.assertRaises(KeyError): self.session["1x"] = 1
        # A list that holds itself would be copied without an end.
        endless = []
        endless.append(endless)
        with self.assertRaisesRegex(TypeError, "holds itself"): self.session["x"] = endless

    def test_functions_bring_what_they_refer_to(self):
        self.session["counter"] = makes_counter(40)
        self.assertEqual(self.session.evaluate("counter(2)"), 42)
        # The same name with another closure is another function.
        self.session["counter"] = makes_counter(50)
        self.assertEqual(self.session.evaluate("counter(2)"), 52)

    def test_strings_over_several_lines_keep_their_indentation(self):
        text = makes_text()
        self.session["text"] = text
        # The lines within the string must not be shifted with the function's own indentation.
        self.assertEqual(self.session.evaluate("text()"), text())

    def test_says_why_a_name_did_not_come(self):
        with self.assertRaisesRegex(kiln.CommandError, "'unsendable' of Python is not in the session: a session takes"):
            self.session.evaluate("uses_what_cannot_go()", globals())

    def test_installed_packages_are_not_imported(self):
        with tempfile.TemporaryDirectory() as folder:
            # As PYTHONPATH or a .pth file names the packages of another environment.
            for kind, where in ("own", "src"), ("other", "site-packages"):
                os.makedirs(os.path.join(folder, where))
                with open(os.path.join(folder, where, f"{kind}_module.py"), "w") as f: f.write("value = 5\n")
                sys.path.append(os.path.join(folder, where))
            self.addCleanup(sys.path.__delitem__, slice(-2, None))
            session = kiln.Session(device="cpu")
            session.run("import own_module")
            self.assertEqual(session.evaluate("own_module.value"), 5)
            with self.assertRaisesRegex(kiln.CommandError, "no module 'other_module'"): session.run("import other_module")

    # Whatever a name meant before, it means what it means in Python now, or is an error.
    def test_names_follow_python(self):

        def value(text, **names):
            return self.session.evaluate(text, names)

        self.assertEqual(value("n", n=5), 5)
        self.session.run("n = 6")
        # A name that Python gives wins over what the session has made of it.
        self.assertEqual(value("n", n=5), 5)
        self.session.run("del n")
        self.assertEqual(value("n", n=5), 5)
        with self.assertRaisesRegex(kiln.CommandError, "'n' of Python is not in the session"): value("n", n=object())
        value("n", n=5)
        with self.assertRaises(kiln.CommandError): value("n")  # Python has no n now
        numbers = [1, 2]
        # Twice: the list is handed over again, and not the session's own changed one.
        for _ in range(2): self.assertEqual(value("numbers + [numbers.append(3)]", numbers=numbers), [1, 2, 3, None])
        self.session["x"] = 1
        # Python's value is set again although it has not changed since.
        self.session.run("x = 2")
        self.session["x"] = 1
        self.assertEqual(self.session["x"], 1)
        # A name of the session's own stays where Python has none.
        self.session.run("own = 3")
        self.assertEqual(value("own + n", n=1), 4)
        self.assertEqual(value("math + sqrt(4)", math=5, sqrt=__import__("math").sqrt), 7)
        self.assertEqual(value("math", math=5), 5)
        # Names of modules that a session imports by itself are Python's when Python has them.
        self.assertEqual(value("triton + torch", triton=1, torch=2, c=tl.constexpr(4), d=tl.float16), 3)
        self.assertEqual(value("[c, d] and triton + torch", triton=1, torch=2, c=tl.constexpr(4), d=tl.float16), 3)

    def test_a_redefined_function_is_seen(self):
        self.session.evaluate("sum(1)", {"sum": shadows_a_builtin})
        self.assertEqual(self.session.evaluate("sum([1, 2])", {}), 3)
        # A function needs a source that can be found by its name.
        with self.assertRaisesRegex(kiln.CommandError, "no function that a def statement made"):
            self.session.evaluate("f(1)", {"f": makes_counter(1)}), self.session.evaluate("f(1)", {"f": lambda x: x})

    def test_names_of_functions_are_pythons(self):
        self.assertEqual(self.session.evaluate("defaults()", globals()), (256, 7))
        self.assertEqual(self.session.evaluate("shadows(1)", globals()), 258)
        self.assertEqual(self.session.evaluate("decorated(1)", globals()), 257 * 2)
        names = {"thrice": takes_three(plain), "plain": plain}
        self.assertEqual(self.session.evaluate("thrice(1) + plain(1)", names), 8)
        self.assertEqual(self.session.evaluate("double(4)", {"double": Odd.double}), 8)
        # An object whose function is itself: following it must end.
        circle = type("Circle", (), {"__module__": "kiln.mine"})()
        circle.fn = circle
        with self.assertRaises(TypeError): self.session["circle"] = circle
        # An attribute that fails otherwise than Python's rule says is an error and no crash.
        with self.assertRaisesRegex(kiln.CommandError, "an? 'Odd' that raises KeyError|not a '__main__.Odd'"):
            self.session.evaluate("odd", {"odd": Odd()})
        self.assertEqual(printed(lambda: self.session.run("print(f'{BLOCK_SIZE!r} BLOCK')", globals())), "256 BLOCK\n")
        with self.assertRaisesRegex(kiln.CommandError, "later"):
            self.session.evaluate("early()", {"early": closes_early()})

    def test_two_things_of_one_name_are_an_error(self):
        # Two modules with a FACTOR of their own.
        other = {"FACTOR": 1}
        exec("def f():\n    return FACTOR", other)
        with self.assertRaisesRegex(TypeError, "cannot be had"): self.session["f"] = other["f"]
        plan = _sources._Plan(strict=True)
        plan.of({"FACTOR": FACTOR})
        with self.assertRaisesRegex(TypeError, "two things are named 'FACTOR'"): plan.of({"FACTOR": 4})

    def test_names_of_helpers_are_not_taken_from_a_session(self):
        self.session["scale_twice"] = scale_twice
        self.assertEqual(self.session.evaluate("scale_twice(3)"), 12)
        # The same helpers again are no conflict.
        self.session["scale_twice"] = scale_twice  # helpers that came from Python come again
        self.session.run("import torch\nBLOCK_SIZE = 5")
        self.session["scale"] = scale  # modules are the same, and numbers follow Python
        self.session.run("def plain_double(x): return 0")
        # The session's own function would be called in its place, which nobody means.
        with self.assertRaisesRegex(TypeError, "refers to 'plain_double', and the session has one of its own"):
            self.session["scale_twice"] = scale_twice
        self.assertEqual(self.session.evaluate("plain_double(3)"), 0)
        self.session.run("del plain_double")
        self.session["scale_twice"] = scale_twice
        self.assertEqual(self.session.evaluate("scale_twice(3)"), 12)

    def test_recursion_under_another_name(self):
        self.assertEqual(self.session.evaluate("again(5)", {"again": factorial}), 120)
        # The name now means another function, which the old one would call.
        with self.assertRaisesRegex(kiln.CommandError, "refers to 'countdown', which is another one now"):
            self.session.evaluate("old(5)", {"old": old_countdown})

    def test_one_call_at_a_time(self):
        problems = []

        # Output is written while the session runs: a call from there would run inside of itself.
        class Nested(io.StringIO):

            def write(_, text):
                try:
                    self.session.run("2")
                except RuntimeError as e:
                    problems.append(str(e))

        with contextlib.redirect_stdout(Nested()): self.session.run("1")
        self.assertIn("runs already", problems[0])

    def test_what_the_output_raises_comes_out(self):

        class Broken(io.StringIO):

            def write(_, text):
                raise OSError("no room")

        with contextlib.redirect_stdout(Broken()), self.assertRaisesRegex(OSError, "no room"):
            # An endless loop: only the exception can end it.
            self.session.run("for i in range(1 << 40): print(i)")
        self.assertEqual(self.session.evaluate("1 + 1"), 2)

    def test_tells_how_far_a_command_is(self):
        lines = []
        self.session.progress = lines.append
        self.session.command("sweep sum(range(n)) n=[10, 20, 30] budget=0.05")
        points = dict.fromkeys(line.split(":")[0] for line in lines)
        # Each point is told, and the empty line at the end.
        self.assertEqual(list(points), ["1 of 3", "2 of 3", "3 of 3", ""])
        self.session.progress = None
        told = len(lines)
        self.session.command("sweep sum(range(n)) n=[10, 20] budget=0.05")
        self.assertEqual(len(lines), told)

        # An exception of the listener ends the command.
        def broken(line):
            raise OSError("no room")

        self.session.progress = broken
        with self.assertRaisesRegex(OSError, "no room"):
            self.session.command("sweep sum(range(n)) n=[10, 20] budget=0.05")

    def test_interrupt_from_another_thread(self):
        threading.Timer(0.3, self.session.interrupt).start()
        with self.assertRaises(KeyboardInterrupt): self.session.run("while True: pass")
        self.assertEqual(self.session.evaluate("1 + 1"), 2)

    def test_sigint_interrupts_and_never_ends_python(self):
        # The handler of Python is there again afterwards.
        before = signal.getsignal(signal.SIGINT)

        def press():
            for _ in range(4):  # the third ends the program at its prompt
                time.sleep(0.4)
                signal.raise_signal(signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        # Each interrupt ends one loop.
        self.session.run("n = 0\nwhile n < 4:\n    try:\n        while True: pass\n"
                         "    except KeyboardInterrupt: n += 1")
        thread.join()
        self.assertEqual(self.session["n"], 4)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_an_interrupted_measurement_keeps_its_samples(self):
        threading.Timer(1.0, self.session.interrupt).start()
        with self.assertRaises(kiln.Interrupted) as caught: self.session.command("bench sum(range(1000)) budget=60")
        # An interrupt for Python, with what was measured so far.
        self.assertIsInstance(caught.exception, KeyboardInterrupt)
        self.assertGreater(caught.exception.value["n"][0], 0)
        self.assertIn("interrupted", caught.exception.value.to_text())
        threading.Timer(1.0, self.session.interrupt).start()
        with self.assertRaises(KeyboardInterrupt): self.session.run("%bench sum(range(9)) budget=60\nafter = 1")
        # The rest of the entry does not run.
        self.assertNotIn("after", self.session)

    def test_python_may_end_while_a_thread_prints(self):
        program = ("import kiln, os, sys, threading, time\ns = kiln.Session(device='cpu')\n"
                   "sys.stdout = open(os.devnull, 'w')\n"
                   "threading.Thread(target=lambda: s.run('while True: print(1)'), daemon=True).start()\n"
                   "time.sleep(0.3)")
        # The process ends although a thread is inside of the session.
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)

        program = program.replace("s.run('while True: print(1)')", "[s.evaluate('sum(range(999))') for _ in range(10**9)]")
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_fork_beside_a_running_session_ends(self):
        # In the child the thread is gone that ran the first session; the idle one and new ones work.
        program = ("import kiln, os, sys, threading, time\ns, idle = kiln.Session(device='cpu'), kiln.Session(device='cpu')\n"
                   "threading.Thread(target=lambda: s.run('while True: pass'), daemon=True).start()\n"
                   "time.sleep(0.3)\nchild = os.fork()\n"
                   "if child: os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
                   "try: s.evaluate('1')\nexcept kiln.CommandError as e: assert 'forked' in str(e)\nelse: sys.exit(1)\n"
                   "sys.exit(0 if idle.evaluate('1 + 1') == kiln.Session(device='cpu').evaluate('2') == 2 else 2)")
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)

    def test_values_come_whole(self):
        self.session.run("def len(x): return 1\nlist = 5\nimport enum\nclass E(enum.IntEnum): A = 1")
        for text in ("(1, 2, 3)", "{3: 4, 5: 6}"): self.assertEqual(self.session.evaluate(text), eval(text))
        # A number with a name of its own would come as a plain number.
        self.assertIs(type(self.session.evaluate("E.A")), kiln.Opaque)
        pair = (1, {"a": 1})
        # Popped twice: each time the session has a copy.
        for _ in range(2): self.assertEqual(self.session.evaluate("pair[1].pop('a')", {"pair": pair}), 1)

    def test_completes(self):
        # A column in characters and not in bytes.
        self.assertEqual(self.session.complete("é = %benc"), (["%bench "], 5))
        self.session["length"] = 3
        self.assertEqual(self.session.complete("'é' + leng"), (["length"], 4))

    def test_values_outlive_their_session_and_thread(self):
        table = self.session.command("static k target=sm_90a", {"k": scale_kernel})
        del self.session
        # Values may be used by any thread, and freed by it.
        threads = [threading.Thread(target=lambda: table.sort("kernel")) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        del table
        gc.collect()

    @unittest.skipUnless(np, "needs numpy")
    def test_tensors_share_their_memory(self):
        x = np.arange(1000, dtype=np.float32)
        self.session["x"] = x
        # Shared memory: what Python writes is read, and the other way round.
        x[:] = 7
        self.assertEqual(self.session.evaluate("x.sum()").item(), 7000)
        self.session.run("y = x.fill_(2.0)")
        self.assertEqual(x[999], 2)
        # Any strides, as long as they are not negative.
        strided = np.arange(24, dtype=np.int32).reshape(4, 6)[::2, 1:]
        np.testing.assert_array_equal(np.asarray(self.session.evaluate("s + 1", {"s": strided})), strided + 1)
        frozen = np.ones(3)
        # What must not be written is copied.
        frozen.flags.writeable = False
        self.session["f"] = frozen
        self.session.run("g = f.fill_(5.0)")
        self.assertEqual(frozen.sum(), 3)
        with self.assertRaises(TypeError): self.session["x"] = np.array(["a"])
        # A mask would be lost, and what it hides would count.
        with self.assertRaisesRegex(TypeError, "mask"): self.session["x"] = np.ma.array([1, 2], mask=[0, 1])
        with self.assertRaises(kiln.CommandError): self.session.evaluate("x", {"x": np.zeros(3, np.longdouble)})
        self.assertEqual(self.session.evaluate("[x, 1]", {"x": np.ones(2)})[0].sum(), 2)

    @unittest.skipUnless(np, "no numpy")
    def test_complex_tensors_share_their_memory(self):
        arrays = [np.ones(3, np.complex64) * (1 + 2j), (np.ones((4, 6), np.complex128) * 1j)[::2, 1::2].T, np.array(2j)]
        for z in arrays + ([torch.ones(3, 2, dtype=torch.complex64).T] if torch else []):
            before, w = np.array(z), z * 1j
            self.session.run("z *= w", {"z": z, "w": w})
            self.assertTrue(np.array_equal(np.asarray(z), before * np.asarray(w)))
            self.assertTrue(np.array_equal(np.asarray(self.session["z"]), np.asarray(z)))
        # Nothing that made them stays.
        self.assertEqual(self.session.evaluate("[n in globals() for n in ('_kiln_parts', '_kiln_view', 'z')]"),
                         [False, False, True])
        if torch:
            with self.assertRaisesRegex(TypeError, r"conjugate bit.*x\.resolve_conj\(\)"): self.session["z"] = z.conj()

    @unittest.skipUnless(torch, "needs torch")
    def test_tensors_of_torch(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int8):
            x = torch.arange(12).to(dtype).reshape(3, 4).t()
            got = self.session.evaluate("x * 2", {"x": x})
            self.assertEqual(got.dtype, dtype)
            self.assertTrue(torch.equal(torch.as_tensor(got), x * 2))
        self.assertEqual(self.session.evaluate("p.sum()", {"p": torch.nn.Parameter(torch.ones(3))}).item(), 3)
        self.session["d"] = torch.float16
        self.assertEqual(self.session.evaluate("str(d)"), "torch.float16")
        self.assertEqual(self.session.evaluate("[d, torch.device('cpu')]"), [torch.float16, torch.device("cpu")])
        # A lazily negated tensor: its memory has the opposite of its values.
        negative = torch.imag(torch.tensor([1 + 2j]).conj())
        with self.assertRaisesRegex(TypeError, "resolve_neg"): self.session["negative"] = negative
        compiled = torch.compile(plain)
        self.assertEqual(self.session.evaluate("compiled(1)", {"compiled": compiled}), 2)
        # Functions of torch are the session's functions of the same name.
        self.assertEqual(self.session.evaluate("act(x)[0]", {"act": torch.relu, "x": torch.tensor([-1.0])}).item(), 0)

    @unittest.skipUnless(np, "needs numpy")
    def test_runs_kernels_and_functions_by_their_source(self):
        x = np.arange(1000, dtype=np.float32)
        np.testing.assert_array_equal(np.asarray(self.session.evaluate("scale(x)", {**globals(), "x": x})), x * 3)
        with self.assertRaises(kiln.CommandError) as caught:
            self.session.evaluate("scale_kernel[(1,)](x, x, 10)", {**globals(), "x": x})
        self.assertIn("BLOCK", str(caught.exception))


class Functions(unittest.TestCase):

    def test_tables_are_pickled(self):
        table = kiln.session().command("devices", {})
        self.assertIs(copy.deepcopy([table])[0], table)
        again = pickle.loads(pickle.dumps(table))
        self.assertEqual((again.rows, again.columns, repr(again), again.to_csv(), again._repr_html_()),
                         (table.rows, table.columns, repr(table), table.to_csv(), table._repr_html_()))
        for call in (lambda: again.sort(table.columns[0]), lambda: again - table, lambda: table - again, again.plot):
            with self.assertRaisesRegex(ValueError, "was pickled has no session"): call()
        with self.assertRaises(AttributeError): again.best

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "needs matplotlib")
    def test_tables_draw_into_axes(self):
        from matplotlib.figure import Figure
        table = kiln.session().command("sweep sum(range(n)) n=[10, 20] budget=0.05")
        axes = table.plot(ax=Figure().subplots())
        line, = axes.lines
        self.assertEqual((line.get_label(), list(line.get_xdata())), ("sum(range(n)), time", [10, 20]))
        self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), ("n", "time (us)"))
        axes = kiln.session().command("bench 1 + 1 budget=0.05").plot(["q1", "median"], ax=Figure().subplots())
        self.assertEqual([line.get_label() for line in axes.lines], ["q1", "median"])
        self.assertEqual([t.get_text() for t in axes.get_xticklabels()], ["cold", "hot"])

    def test_measure_in_the_callers_names(self):
        # A local variable of the caller, as in IPython.
        numbers = list(range(100))
        table = kiln.bench("sum(numbers)", budget=0.1)
        self.assertEqual(table["cache"], ["cold", "hot"])
        self.assertEqual(table[0]["cache"], "cold")
        self.assertEqual(table.units["median"], "us")
        self.assertGreater(min(table["median"]), 0)
        self.assertEqual(len(table), 2)
        # Hot is below cold, or both are alike; reversed puts the larger first.
        self.assertEqual([row["cache"] for row in table.sort("median", reverse=True)], ["cold", "hot"])
        self.assertEqual(len(table - table), 0)
        self.assertIn("<svg", table.plot("median").svg)
        self.assertIn("cache,", table.to_csv())
        self.assertIn("| cache", table.to_markdown())
        self.assertIn("<table>", table._repr_html_())
        self.assertIn("cold", repr(table))
        with self.assertRaisesRegex(KeyError, "there are cache"): table["nothing"]
        with self.assertRaises(AttributeError): table.nothing

    def test_look_at_kernels(self):
        table = kiln.static("scale_kernel", target="sm_90a")
        self.assertEqual(table[0]["target"], "sm_90a")
        self.assertEqual(table[0]["spills"], 0)

    def test_take_texts(self):
        with self.assertRaisesRegex(TypeError, "takes the text of an expression"): kiln.bench(len)


def repeated_sum(n, times=1):
    return sum(range(n)) * times * FACTOR.value


class Sweeps(unittest.TestCase):
    axes = {"n": [10, 20], "times": (1, 2)}
    # So that the rows of two tables can be compared by their order.
    points = [(10, 1), (10, 2), (20, 1), (20, 2)]  # the last axis runs fastest

    def check(self, rows):
        self.assertEqual([(row["n"], row["times"]) for row in rows], self.points)
        for row in rows:
            self.assertIsNone(row["problem"])
            self.assertGreater(row["us"], 0)

    def test_in_this_process(self):
        self.check(kiln.sweep("sum(range(n)) * times", self.axes, budget=0.05))
        self.check(kiln.sweep(repeated_sum, self.axes, budget=0.05))

    def test_on_threads(self):
        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            self.check(kiln.sweep(repeated_sum, self.axes, executor, budget=0.05))

    # Spawn imports this file in the worker, fork inherits it.
    def test_on_processes(self):
        word, held = "a b", [1, 2]
        for method in ("spawn", "fork"):
            with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as executor:
                self.check(kiln.sweep(repeated_sum, self.axes, executor, budget=0.05))
                # Names of the caller, a module among them, and a setup.
                text = "math.sqrt(n) + len(word) + held[0] + times + m"
                self.check(kiln.sweep(text, self.axes, executor, budget=0.05, setup="m = n"))

    @unittest.skipUnless(np, "needs numpy")
    def test_tensors_go_along(self):
        x = np.ones(4, np.float32)
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
            rows = kiln.sweep("x * n", {"n": [2.0]}, executor, budget=0.05, pairs=12)
        self.assertGreater(len(rows), 0)
        self.assertEqual([row["problem"] for row in rows], [None] * len(rows))

    def test_any_executor_will_do(self):
        submitted = []

        class Executor:

            def submit(self, function, *arguments):
                # What is submitted must be able to cross to another process.
                submitted.append(pickle.dumps((function, arguments)))
                future = concurrent.futures.Future()
                future.set_result(function(*arguments))
                return future

        self.check(kiln.sweep(repeated_sum, self.axes, Executor(), budget=0.05))
        self.assertEqual(len(submitted), 4)

    def test_an_error_cancels_the_others(self):
        futures = []

        class Executor:

            def submit(self, function, *arguments):
                futures.append(concurrent.futures.Future())
                return futures[-1]

        def fail():
            # The others wait, so that there is something to cancel.
            while len(futures) < 4: time.sleep(0.001)
            futures[0].set_exception(OSError("a worker was lost"))

        thread = threading.Thread(target=fail)
        thread.start()
        with self.assertRaisesRegex(OSError, "a worker was lost"): kiln.sweep(repeated_sum, self.axes, Executor())
        thread.join()
        self.assertTrue(all(future.cancelled() for future in futures[1:]))

    def test_problems_are_rows_and_mistakes_are_errors(self):
        # A point that fails is a row; a wrong option is the caller's mistake.
        rows = kiln.sweep("sum(range(n))", {"n": [10, "x"]}, budget=0.05)
        self.assertIsNone(rows[0]["problem"])
        self.assertIsNone(rows[1]["us"])
        self.assertIn("int", rows[1]["problem"])
        with self.assertRaisesRegex(kiln.CommandError, "cache is cold or hot|cache= is cold or hot"):
            kiln.sweep("n", {"n": [1]}, cache="warm")
        for axes in ({}, {"n": []}, {"1": [1]}):
            with self.assertRaises(ValueError): kiln.sweep("n", axes)
        for what in (3, lambda n: n):
            with self.assertRaises(TypeError): kiln.sweep(what, {"n": [1]})
        with self.assertRaisesRegex(TypeError, "the axis 'n' is a list of values, got 3"): kiln.sweep("n", {"n": 3})
        with self.assertRaisesRegex(TypeError, "an executor with submit"): kiln.sweep("n", {"n": [1]}, object())


@unittest.skipUnless(has_ipython, "needs IPython")
class Notebooks(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        from IPython.core.interactiveshell import InteractiveShell
        cls.shell = InteractiveShell.instance()
        cls.shell.run_cell("%load_ext kiln")
        cls.shell.user_ns.update({name: globals()[name] for name in ("scale_kernel", "scaled", "scale", "BLOCK_SIZE")})

    def cell(self, text):
        """(what it gave, what it printed, its error)"""
        with contextlib.redirect_stdout(io.StringIO()) as out: done = self.shell.run_cell(text)
        return done.result, out.getvalue(), done.error_in_exec or done.error_before_exec

    def test_every_command_is_a_magic(self):
        magics = self.shell.magics_manager.magics["line"]
        for name, *_ in kiln._kiln.Session.commands(): self.assertIn(name, magics)
        # IPython's own magic of a name is left alone.
        self.assertFalse(getattr(magics["time"], "is_kiln", False), "IPython keeps its own")
        self.assertIn("seconds for each cache state", magics["bench"].__doc__)

    def test_commands_give_tables(self):
        table, _, error = self.cell("n = 1000\nr = %bench sum(range(n)) budget=0.1\nr")
        self.assertIsNone(error)
        self.assertIs(type(table), kiln.Table)
        table, _, _ = self.cell("%kiln time sum(range(n))")
        self.assertIn("wall_us", table.columns)
        _, text, _ = self.cell("%target sm_90a\n%ptx scale_kernel signature=*fp32,*fp32,i32 BLOCK=64")
        self.assertIn(".visible .entry scale_kernel", text)

    def test_cells(self):
        _, text, error = self.cell("k = 5\n")
        _, text, error = self.cell("%%kiln -o total,twice\ntotal = sum(range(k))\ntwice = total * 2\ntwice")
        self.assertIsNone(error)
        self.assertIn("20\n", text)
        self.assertEqual((self.shell.user_ns["total"], self.shell.user_ns["twice"]), (10, 20))

    def test_errors(self):
        for text, said in (("%bench nothing_there", "nothing_there"), ("%kiln bnch 1", "did you mean %bench"),
                           ("%%kiln -x\n1", "takes -o"), ("%%kiln\n1 +", "expected")):
            _, _, error = self.cell(text)
            self.assertIsInstance(error, kiln.Error, text)
            self.assertIn(said, str(error))

    def test_tables_of_any_line_are_shown(self):
        _, text, error = self.cell("for i in range(2):\n    %static scale_kernel target=sm_90a\nx = 1")
        self.assertIsNone(error)
        self.assertEqual(text.count("sm_90a"), 2)
        # A semicolon hides the table, as IPython hides values.
        _, text, error = self.cell("%static scale_kernel target=sm_90a;")
        self.assertEqual((text, error), ("", None))
        _, text, _ = self.cell("t = %static scale_kernel target=sm_90a")
        self.assertEqual(text, "")
        table, text, _ = self.cell("%static scale_kernel target=sm_90a")
        self.assertIs(type(table), kiln.Table)
        # Shown by the table itself and not again as the value.
        self.assertEqual(text.count("sm_90a"), 1)
        self.assertRegex(text, r"^Out\[\d+\]: *\n *kernel +target")  # and no prompt without a value
        _, text, _ = self.cell("%static scale_kernel target=sm_90a\n%static scale_kernel target=sm_80")
        self.assertEqual((text.count("sm_90a"), text.count("sm_80"), text.count("Out[")), (1, 1, 1))

    def test_lines_see_locals_and_keep_braces(self):
        self.shell.run_cell("y = 1")
        # Braces are IPython's way to fill in variables, and a dict's own.
        _, text, _ = self.cell("def g():\n    y = 41\n    %kiln time print({'{y}': y + 1})\ng()")
        self.assertIn("{'{y}': 42}", text)

    def test_completion(self):

        def completed(line):
            return self.shell.complete(None, line, len(line))[1]

        self.assertIn("budget=", completed("%bench sum(range(5)) bud"))
        self.assertIn("sm_90a", completed("%static scale_kernel target=sm_9"))
        self.shell.run_cell("softmax_of_mine = 1")
        self.assertIn("softmax_of_mine", completed("%bench softmax_of"))
        self.assertIn("time", " ".join(completed("%kiln ti")))

    def test_shows_progress_in_notebooks(self):
        from kiln import _notebook
        shown = []

        class Handle:

            def update(self, data, raw):
                shown.append(data["text/plain"])

        def display(data, raw, display_id):
            shown.append(data["text/plain"])
            return Handle()

        progress = _notebook._Progress(type("Shell", (), {"kernel": None})())
        import IPython.display
        # In place of a notebook's, for there is none here.
        before, IPython.display.display = IPython.display.display, display
        try:
            for line in ("1 of 2", "2 of 2", "", "1 of 1", ""): progress(line)
        finally:
            IPython.display.display = before
        self.assertEqual(shown, ["1 of 2", "2 of 2", "", "1 of 1", ""])
        self.assertIs(type(kiln.session().progress), _notebook._Progress)

    def test_unloads(self):
        self.shell.run_cell("%unload_ext kiln")
        self.assertNotIn("bench", self.shell.magics_manager.magics["line"])
        # IPython's own stays when Kiln's go.
        self.assertIn("time", self.shell.magics_manager.magics["line"])
        self.shell.run_cell("%load_ext kiln")
        self.assertIn("bench", self.shell.magics_manager.magics["line"])


if __name__ == "__main__":
    unittest.main(verbosity=1)

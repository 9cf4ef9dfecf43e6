"""Where kernels of kiln.jit have their text from: files that change, and functions without one."""
import importlib.util
import linecache
import os
import subprocess
import sys
import tempfile
import unittest

import kiln
import kiln.language as tl

np = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
if not np:
    print("skipped: this Python has no numpy (KILN_TEST_PYTHON names another one)")
    sys.exit(0)

_TEXT = """import kiln
import kiln.language as tl
{before}
@kiln.jit
def plus(v):
    return v + {number}

@kiln.jit
def put(out, v, n: tl.constexpr):
    tl.store(out, plus(v) + n * 0)
"""


class Files(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "kernels_that_change.py")

    def written(self, number, before=""):
        with open(self.path, "w") as f: f.write(_TEXT.format(number=number, before=before))

    def imported(self):
        spec = importlib.util.spec_from_file_location("kernels_that_change", self.path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def put(self, module, n=1):
        out = np.zeros(1, np.float32)
        module.put[1](out, 0.0, n)
        return out[0]

    def test_a_kernel_is_what_was_imported(self):
        self.written(1)
        module = self.imported()
        self.written(2)  # before the first launch
        self.assertEqual(self.put(module), 1)
        # Of as many lines as before, and of more: another function is where this one was.
        for before in ("", "\n" * 9, "@kiln.jit\ndef other(out, v, n: tl.constexpr):\n    tl.store(out, 7.0)\n" * 2):
            self.written(20, before)
            linecache.checkcache(self.path)
            for n in range(2, 4): self.assertEqual(self.put(module, 10 * len(before) + n), 1)
        os.remove(self.path)
        self.assertEqual(self.put(module, 4), 1)

    def test_a_kernel_that_is_imported_again_is_the_new_one(self):
        for number in range(3):
            self.written(number)
            self.assertEqual(self.put(self.imported()), number)

    def test_a_function_with_new_code_has_its_text(self):
        # As %autoreload has it: functions stay, and get the code of the file's new text.
        text = "import kiln\nimport kiln.language as tl\n@kiln.jit\ndef put(out):\n    tl.store(out, {}.0)\n"
        functions = []
        for number in range(2):
            with open(self.path, "w") as f: f.write(text.format(number))
            functions.append(self.imported().put.fn)
        functions[0].__code__ = functions[1].__code__
        out = np.full(1, 5, np.float32)
        kiln.jit(functions[0])[1](out)
        self.assertEqual(out[0], 1)

    def test_what_measures_sees_what_was_imported(self):
        self.written(3)
        put = self.imported().put
        self.written(4, "\n" * 5)
        out = np.zeros(1, np.float32)
        session = kiln.Session(device="cpu")
        session.run("put[(1, )](out, 0.0, 1)", {"put": put, "out": out})
        self.assertEqual(out[0], 3)

    def test_errors_name_the_line_that_was_imported(self):
        self.written("no_such_name")
        module = self.imported()
        self.written(1, "\n" * 3)
        with self.assertRaisesRegex(kiln.Error, "no_such_name is not defined") as caught: self.put(module)
        self.assertEqual((caught.exception.file, caught.exception.line), (self.path, 6))

    @unittest.skipUnless(importlib.util.find_spec("triton"), "no triton")
    def test_functions_of_triton_are_what_was_imported(self):
        with open(self.path, "w") as f: f.write("import triton\n\n\n@triton.jit\ndef plus(v):\n    return v + 1\n")
        plus = self.imported().plus
        with open(self.path, "w") as f: f.write("import triton\n\n\n@triton.jit\ndef plus(v):\n    return v + 2\n")

        @kiln.jit
        def kernel(out):
            tl.store(out, plus(0.0))

        out = np.zeros(1, np.float32)
        kernel[1](out)
        self.assertEqual(out[0], 1)
        session = kiln.Session(device="cpu")
        session.run("kernel[(1, )](out)", {"kernel": kernel, "out": out})
        self.assertEqual(out[0], 1)


class NoFile(unittest.TestCase):

    @unittest.skipUnless(sys.version_info >= (3, 13), "Python keeps no text of -c")
    def test_texts_of_the_command_line(self):
        code = "import kiln, kiln.language as tl, numpy as np\n@kiln.jit\ndef put(out):\n    tl.store(out, 5.0)\n"
        code += "out = np.zeros(1, np.float32)\nput[1](out)\nassert out[0] == 5"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_texts_that_python_keeps(self):
        text = "@kiln.jit\ndef put(out):\n    tl.store(out, 5.0)\n"
        names, out = {"kiln": kiln, "tl": tl}, np.zeros(1, np.float32)
        exec(compile(text, "<no file>", "exec"), names)
        with self.assertRaisesRegex(OSError, "'put' has no source text"): names["put"][1](out)
        linecache.cache["<made>"] = (len(text), None, text.splitlines(True), "<made>")
        self.addCleanup(linecache.cache.pop, "<made>")
        exec(compile(text, "<made>", "exec"), names)
        names["put"][1](out)
        self.assertEqual(out[0], 5)


if __name__ == "__main__":
    unittest.main()

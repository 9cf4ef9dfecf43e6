"""Kiln between Inductor and Triton, without a GPU. Skipped where torch or triton is not installed."""
import ctypes
import glob
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

if any(importlib.util.find_spec(name) is None for name in ("torch", "triton")):
    print("skipped: this Python has no torch with triton (KILN_TEST_PYTHON names another one)")
    sys.exit(0)
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")

import torch._inductor.async_compile as inductor
from torch._inductor.runtime import triton_compat
from torch._inductor.triton_bundler import TritonBundler
from triton.backends.nvidia import driver as nvidia_driver

import kiln.triton
from kiln.triton import _driver, _inductor


class Kernel:
    """What Inductor's code makes of a kernel, as far as the pool knows it."""

    def precompile(self, warm_cache_only):
        self.thread, self.warm = threading.current_thread(), warm_cache_only
        TritonBundler.put("hash", 0)


def fail():
    raise ValueError("no kernel")


class Pool(unittest.TestCase):

    def setUp(self):
        kiln.triton.enable()
        self.addCleanup(inductor.after_fork)
        self.addCleanup(kiln.triton.disable)

    def submit(self, load):
        return inductor.AsyncCompile.process_pool().submit(inductor._worker_compile_triton, load, {}, {})

    def test_threads_of_this_process_compile(self):
        with mock.patch("subprocess.Popen", side_effect=AssertionError("a process")):
            inductor.AsyncCompile.wakeup()
            self.assertTrue(inductor.AsyncCompile.use_process_pool())  # from the first kernel on
            kernel, microseconds = self.submit(Kernel).result()
        self.assertIsNot(kernel.thread, threading.main_thread())
        self.assertTrue(kernel.warm)
        self.assertGreaterEqual(microseconds, 0)

    def test_kernels_are_noted_once(self):
        TritonBundler.begin_compile()
        self.addCleanup(TritonBundler.end_compile)
        self.submit(Kernel).result()
        self.assertEqual(TritonBundler._entries, [])
        TritonBundler.put("hash", 0)
        self.assertEqual(len(TritonBundler._entries), 1)

    def test_errors_are_those_of_the_compiler(self):
        with self.assertRaisesRegex(ValueError, "no kernel"): self.submit(fail).result()

    def test_all_of_it_is_given_back(self):
        pools = inductor.AsyncCompile
        self.assertIsInstance(pools.process_pool(), _inductor._Threads)
        self.assertTrue(triton_compat.triton_key().startswith("kiln "))
        kiln.triton.disable()
        self.assertEqual(pools.process_pool.__module__, inductor.__name__)
        self.assertFalse(triton_compat.triton_key.__module__.startswith("kiln"))
        kiln.triton.enable()
        self.assertTrue(triton_compat.triton_key().startswith("kiln "))

    def test_inductor_is_taken_when_it_is_imported(self):
        code = ("import sys, kiln.triton; kiln.triton.enable(); assert 'torch._inductor' not in sys.modules; "
                "import torch._inductor.async_compile as inductor; "
                "print(type(inductor.AsyncCompile.process_pool()).__module__)")
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "kiln.triton._inductor")


class Key(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = folder.name
        sys.path.insert(0, self.site)
        self.addCleanup(sys.path.remove, self.site)
        self.package = types.SimpleNamespace(__name__="a_package", __file__=self.path("a_package/__init__.py"))
        self.write("a_package/__init__.py", "one = 1\n", 1)
        self.write("a_package-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: a_package\nVersion: 1\n", 1)
        names = ("a_package/__init__.py", "a_package-1.dist-info/METADATA", "a_package-1.dist-info/RECORD")
        self.write(names[2], "".join(f"{name},sha256=AAAA,8\n" for name in names), 2)

    def path(self, name):
        return os.path.join(self.site, name)

    def write(self, name, text, time):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f: f.write(text)
        os.utime(self.path(name), (time, time))

    def key(self):
        return _inductor._files(self.package)

    def test_the_same_wheel_has_one_key_wherever_it_is(self):
        before = self.key()
        os.utime(self.package.__file__, (0, 0))
        self.write("a_package/__pycache__/x.pyc", "x", 5)
        self.assertEqual(self.key(), before)

    def test_a_file_that_was_changed_or_added_counts(self):
        keys = {self.key()}
        self.write("a_package/__init__.py", "one = 2\n", 3)
        keys.add(self.key())
        self.write("a_package/__init__.py", "one = 3\n", 4)
        keys.add(self.key())
        self.write("a_package/more.py", "", 1)
        keys.add(self.key())
        self.assertEqual(len(keys), 4)

    def test_without_a_wheel_all_files_count(self):
        os.remove(self.path("a_package-1.dist-info/METADATA"))
        os.remove(self.path("a_package-1.dist-info/RECORD"))
        os.rmdir(self.path("a_package-1.dist-info"))
        before = self.key()
        os.utime(self.package.__file__, (7, 7))
        self.assertNotEqual(self.key(), before)


FAKE = glob.glob(os.path.join(os.path.dirname(kiln.__file__), "../../tests/unit/runtime/cuda/libcuda_fake.so"))


@unittest.skipUnless(FAKE and _driver.is_known(), "no fake driver was built, or Triton's driver is another one")
class Driver(unittest.TestCase):

    def setUp(self):
        kiln.triton.enable()
        self.addCleanup(kiln.triton.disable)
        with mock.patch.dict(os.environ, KILN_CUDA_LIBRARY=FAKE[0]):
            self.utils = nvidia_driver.CudaUtils()
        self.addCleanup(setattr, _driver.Utils, "_made", None)

    def test_code_is_loaded_without_a_compiler(self):
        self.assertIsInstance(self.utils, _driver.Utils)
        module, function, registers, spilled, threads = self.utils.load_binary("kernel", b"\x7fELF", 0, 0)
        self.assertTrue(module and function)
        self.assertGreater(registers, 0)
        self.assertEqual(self.utils.get_device_properties(0)["max_shared_mem"], 232448)

    def test_what_triton_3_9_asks_needs_no_compiler(self):
        module = self.utils.load_binary("kernel", b"\x7fELF", 0, 0)[0]
        with mock.patch.object(_driver, "theirs", side_effect=AssertionError("builds Triton's module")):
            self.assertEqual(self.utils.get_device_capability(0), (9, 0))
            self.utils.set_current_device(0)
            self.assertEqual(self.utils.get_current_device(), 0)
            self.assertEqual(self.utils.get_default_stream(0), 0)
            self.utils.unload_module(module)
            status = lambda stream, to: ctypes.cast(to, ctypes.POINTER(ctypes.c_int)).__setitem__(0, stream.value or 0) or 0
            with mock.patch.object(self.utils, "_cuda", types.SimpleNamespace(cuStreamIsCapturing=status)):
                self.assertEqual([self.utils.is_stream_capturing(s) for s in (2, 0)], [True, False])

    def test_errors_are_worded_as_tritons(self):
        with self.assertRaisesRegex(RuntimeError, r"^Triton Error \[CUDA\]: "):
            self.utils.load_binary("kernel", b"no code", 0, 0)

    def test_the_size_of_prints_is_set_with_tritons_calls(self):
        refuses, calls, limit = False, [], 4096

        def get_limit(to, which):
            calls.append(("get", which))
            ctypes.cast(to, ctypes.POINTER(ctypes.c_size_t))[0] = limit
            return 0

        def set_limit(which, size):
            nonlocal limit
            calls.append(("set", which, size.value))
            if not refuses: limit = size.value
            return int(refuses)

        def current(to):
            ctypes.cast(to, ctypes.POINTER(ctypes.c_void_p))[0] = 1
            return 0

        def words(code, to):
            ctypes.cast(to, ctypes.POINTER(ctypes.c_char_p))[0] = b"invalid argument"
            return 0

        cuda = types.SimpleNamespace(cuCtxGetCurrent=current, cuCtxGetLimit=get_limit, cuCtxSetLimit=set_limit,
                                     cuGetErrorString=words)
        with mock.patch.object(self.utils, "_cuda", cuda):
            for _ in range(2): self.utils.set_printf_fifo_size(8192)
            refuses = True  # as after a kernel that prints
            self.utils.set_printf_fifo_size(8192)
            self.assertEqual(calls, [("get", 1), ("set", 1, 8192), ("get", 1), ("get", 1)])
            with self.assertRaisesRegex(RuntimeError, r"^Triton Error \[CUDA\]: invalid argument$"):
                self.utils.set_printf_fifo_size(4096)
            calls.clear()
            with self.assertRaisesRegex(ValueError, "non-negative"): self.utils.set_printf_fifo_size(-1)
            with self.assertRaisesRegex(OverflowError, "too large"): self.utils.set_printf_fifo_size(1 << 64)
            self.assertEqual(calls, [])

    def test_what_is_not_here_is_tritons(self):
        with mock.patch.object(_driver, "theirs", return_value=types.SimpleNamespace(fill_tma_descriptor=7)):
            self.assertEqual(self.utils.fill_tma_descriptor, 7)

    def test_tritons_are_made_once_beside_these(self):
        names = ("PyCUtensorMap", "load_binary", "get_device_properties", "cuOccupancyMaxActiveClusters",
                 "set_printf_fifo_size", "fill_tma_descriptor")
        module = types.SimpleNamespace(**{name: object() for name in names})
        had = dict(vars(_driver._theirs))
        with mock.patch.object(nvidia_driver, "PyCUtensorMap", None), \
             mock.patch.object(nvidia_driver, "library_dirs", return_value=[]), \
             mock.patch.object(nvidia_driver, "compile_module_from_src", side_effect=[OSError("gcc"), module]) as build:
            try:
                with self.assertRaisesRegex(OSError, "gcc"): _driver.theirs()
                for _ in range(2):
                    self.assertIs(_driver.theirs().load_binary, module.load_binary)
                    self.assertIs(self.utils.fill_tma_descriptor, module.fill_tma_descriptor)
                self.assertEqual(build.call_count, 2)
                self.assertIs(nvidia_driver.PyCUtensorMap, module.PyCUtensorMap)
                self.assertIs(nvidia_driver.CudaUtils, _driver.Utils)
            finally:
                if "instance" not in had: del _driver._theirs.instance

    def test_it_is_given_back(self):
        kiln.triton.disable()
        self.assertIs(nvidia_driver.CudaUtils, _driver._theirs)


if __name__ == "__main__":
    unittest.main()

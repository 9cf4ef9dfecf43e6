"""What Kiln replaces around triton.compile, without a GPU. Skipped where torch or triton is not installed."""
import glob
import importlib.util
import os
import sys
import types
import unittest
from unittest import mock

if any(importlib.util.find_spec(name) is None for name in ("torch", "triton")):
    print("skipped: this Python has no torch with triton (KILN_TEST_PYTHON names another one)")
    sys.exit(0)

from triton.backends.nvidia import driver as nvidia_driver

import kiln.triton
from kiln.triton import _driver


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

    def test_errors_are_worded_as_tritons(self):
        with self.assertRaisesRegex(RuntimeError, r"^Triton Error \[CUDA\]: "):
            self.utils.load_binary("kernel", b"no code", 0, 0)

    def test_what_is_not_here_is_tritons(self):
        with mock.patch.object(_driver, "theirs", return_value=types.SimpleNamespace(fill_tma_descriptor=7)):
            self.assertEqual(self.utils.fill_tma_descriptor, 7)

    def test_it_is_given_back(self):
        kiln.triton.disable()
        self.assertIs(nvidia_driver.CudaUtils, _driver._theirs)


if __name__ == "__main__":
    unittest.main()

"""Kernels of kiln.jit that classes hold."""
import importlib.util
import sys
import types
import unittest

import kiln
import kiln.language as tl

np = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None
if not np:
    print("skipped: this Python has no numpy (KILN_TEST_PYTHON names another one)")
    sys.exit(0)


class Scale:
    """What kernels call by the class's name, or by its module's and the class's."""

    @staticmethod
    @kiln.jit
    def twice(v):
        return v * 2


shapes = types.ModuleType("shapes")
shapes.Scale = Scale


class Scaled:

    @staticmethod
    @kiln.jit
    def forward(x, out, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, Scale.twice(tl.load(x + i)) + shapes.Scale.twice(1.0))


class FunctionsOfClasses(unittest.TestCase):

    def test_a_kernel_of_a_class_calls_those_of_others(self):
        x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
        Scaled.forward[1](x, out, 16)
        self.assertTrue((out == 2 * x + 2).all())


if __name__ == "__main__":
    unittest.main()

"""Kiln: a compiler for kernels in the Triton language."""
from kiln._jit import Kernel, jit
from kiln._kiln import Error, version as __version__

__all__ = ["Error", "Kernel", "__version__", "jit"]

"""With KILN_TRITON=1 (or strict) in the environment: Kiln becomes Triton's compiler as soon as triton is imported.

kiln_autoload.pth imports this when Python starts. Programs that never import triton load nothing of Kiln.
"""
import importlib.util
import os
import sys


class _Triton:
    """Finds triton as the others do, and enables Kiln when it has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "triton": return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None: return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            try:
                import kiln.triton
                kiln.triton.enable(strict=os.environ["KILN_TRITON"] == "strict")
            except Exception as e:  # a Triton that the bridge does not know: programs go on as without Kiln
                import warnings
                warnings.warn(f"KILN_TRITON: Kiln cannot be Triton's compiler here: {e}", RuntimeWarning)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Triton())

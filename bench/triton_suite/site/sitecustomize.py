"""Programs that tests start: Kiln is their compiler too, as where the package is installed (kiln_autoload.pth)."""
import importlib.util
import os

if os.environ.get("KILN_TRITON", "0") not in ("", "0") and importlib.util.find_spec("_kiln_autoload"):
    import _kiln_autoload

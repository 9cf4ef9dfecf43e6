"""Programs that tests start: Kiln is their compiler too, as where the package is installed (kiln_autoload.pth)."""
import importlib.util

if importlib.util.find_spec("_kiln_autoload"): import _kiln_autoload

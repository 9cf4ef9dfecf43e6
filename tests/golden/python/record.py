"""Records what Python prints for the scripts of this folder: python3 record.py [NAME…]. Kiln must print the same."""
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).parent
for script in sorted(here.glob("*.py")):
    if script.name == "record.py" or (len(sys.argv) > 1 and script.stem not in sys.argv[1:]):
        continue
    done = subprocess.run([sys.executable, script.name, "a", "b"], cwd=here, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{script.name}: {done.stderr}")
    script.with_suffix(".txt").write_text(done.stdout)

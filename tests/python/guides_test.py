"""docs/pytorch.md as one program, docs/notebook.md as a notebook without a browser, and the script that they run."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def missing(*modules):
    return next((m for m in modules if importlib.util.find_spec(m) is None), None)


def blocks(guide):
    with open(os.path.join(ROOT, "docs", guide)) as f: return re.findall(r"\n```python\n(.*?)```\n", f.read(), re.S)


class Guides(unittest.TestCase):

    @unittest.skipIf(missing("torch", "numpy"), "needs torch and numpy")
    def test_pytorch(self):
        code = blocks("pytorch.md")
        self.assertEqual(len(code), 4)
        with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
            f.write("\n".join(code))
            f.flush()
            done = subprocess.run([sys.executable, f.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Kiln computes ", done.stdout)

    @unittest.skipIf(missing("numpy", "nbclient", "nbformat", "ipykernel"), "needs numpy, nbclient and ipykernel")
    def test_notebook(self):
        import nbclient
        import nbformat
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(code) for code in blocks("notebook.md")]
        self.assertEqual(len(book.cells), 8)
        nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()  # raises what a cell raises
        shown = [{kind for o in cell.outputs for kind in o.get("data", {})} for cell in book.cells]
        for at in (1, 2, 5): self.assertIn("text/html", shown[at], book.cells[at].source)
        self.assertIn("image/svg+xml", shown[3])

    @unittest.skipIf(missing("torch", "triton", "numpy"), "needs torch and triton")
    def test_triton_script(self):
        import torch
        env = {**os.environ, "KILN_TRITON": "strict"}
        if not torch.cuda.is_available(): env["TRITON_INTERPRET"] = "1"
        done = subprocess.run([sys.executable, os.path.join(ROOT, "examples/triton/train.py")], env=env,
                              capture_output=True, text=True)
        self.assertIn("falls", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""The Debian packages of a build: the same bytes twice, and what they hold runs where they are unpacked.

    python3 deb_test.py BUILD
"""
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv.pop(1))
PROGRAM = """
#include <kiln/kiln.h>
#include <stdio.h>
int main(void) { return printf("%s", kiln_version()) > 0 ? 0 : 1; }
"""


def run(*command, cwd=None, **variables):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=dict(os.environ, **variables))
    if done.returncode: raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Packages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kiln_deb_")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for out in ("first", "second"):
            run(sys.executable, os.path.join(ROOT, "packaging/deb.py"), BUILD, os.path.join(cls.folder, out),
                "--compression", "none", SOURCE_DATE_EPOCH="1700000000", PYTHONDONTWRITEBYTECODE="1")
        cls.packages = sorted(os.listdir(os.path.join(cls.folder, "first")))
        cls.root = os.path.join(cls.folder, "root")
        for package in cls.packages: run("dpkg-deb", "-x", os.path.join(cls.folder, "first", package), cls.root)
        cls.libraries = os.path.join(cls.root, "usr/lib")

    def field(self, package, name):
        file = next(p for p in self.packages if p.startswith(package + "_"))
        return run("dpkg-deb", "-f", os.path.join(self.folder, "first", file), name).strip()

    def test_the_same_bytes_twice(self):
        for package in self.packages:
            files = (os.path.join(self.folder, out, package) for out in ("first", "second"))
            self.assertTrue(filecmp.cmp(*files, shallow=False), package)

    def test_depend_on_what_they_use(self):
        self.assertIn("libstdc++6", self.field("libkiln", "Depends"))
        self.assertEqual(self.field("libkiln-dev", "Depends"), f"libkiln (= {self.field('libkiln', 'Version')})")
        self.assertEqual(self.field("libkiln", "Maintainer"), self.field("kiln", "Maintainer"))

    def test_sums_are_those_of_the_files(self):
        for package in self.packages:
            into = os.path.join(self.folder, package)
            run("dpkg-deb", "-e", os.path.join(self.folder, "first", package), into)
            subprocess.run(["md5sum", "--check", "--quiet", os.path.join(into, "md5sums")], cwd=self.root, check=True)

    def test_the_program_runs(self):
        kiln = os.path.join(self.root, "usr/bin/kiln")
        self.assertIn(self.field("kiln", "Version"), run(kiln, "--version"))
        self.assertEqual(run(kiln, "--device", "cpu", "-c", "print(6 * 7)"), "42\n")

    def test_programs_in_c_build(self):
        source, program = os.path.join(self.folder, "p.c"), os.path.join(self.folder, "p")
        with open(source, "w") as f: f.write(PROGRAM)
        flags = run("pkg-config", "--cflags", "--libs", "kiln",
                    PKG_CONFIG_PATH=os.path.join(self.libraries, "pkgconfig")).split()
        run("cc", source, "-o", program, *flags)
        self.assertEqual(run(program, LD_LIBRARY_PATH=self.libraries), self.field("libkiln", "Version"))

    def test_the_python_package_imports(self):
        packages = os.path.join(self.libraries, "python3/dist-packages")
        if not os.path.isdir(packages): self.skipTest("built without Python")
        code = "import kiln; print(kiln.Session(device='cpu').evaluate('6 * 7'), kiln.__file__)"
        said = run(sys.executable, "-c", code, PYTHONPATH=packages, LD_LIBRARY_PATH=self.libraries)
        self.assertEqual(said, f"42 {packages}/kiln/__init__.py\n")

    def test_the_man_page(self):
        page = os.path.join(self.root, "usr/share/man/man1/kiln.1.gz")
        if not shutil.which("man"): self.skipTest("needs man")
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True,
                              env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="100"))
        self.assertEqual(done.stderr, "")
        for text in ("kiln compile [OPTIONS] file", "--num-warps", "that is not a terminal", "EXIT STATUS",
                     "action TEXT:{export,import} export: write the cache into a file; import: add a file"):
            self.assertIn(text, " ".join(done.stdout.split()))

    def test_completions(self):
        share = os.path.join(self.root, "usr/share")
        script = (f"source {share}/bash-completion/completions/kiln; COMP_CWORD=$(($# - 1)); COMP_WORDS=(\"$@\"); "
                  "_kiln; echo \"${COMPREPLY[@]}\"")
        complete = lambda *words: run("bash", "-c", script, "bash", *words, cwd=self.root).split()
        self.assertEqual(complete("kiln", "comp"), ["compile", "compare"])
        self.assertEqual(complete("kiln", "compile", "--num-w"), ["--num-warps"])
        for shell, file in (("zsh", "zsh/vendor-completions/_kiln"), ("fish", "fish/vendor_completions.d/kiln.fish")):
            self.assertGreater(os.path.getsize(os.path.join(share, file)), 1000)
            if shutil.which(shell): run(shell, "--no-execute", os.path.join(share, file))


if __name__ == "__main__":
    unittest.main()

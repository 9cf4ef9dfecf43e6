"""Launches of kiln.jit that Ctrl-C, forks and the end of the process meet."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import kiln
import kiln.language as tl
from jit_test import put, scale, square, zeros


@kiln.jit
def spin(out, n):
    total = 0.0
    for i in range(n):
        total = total * 0.5 + i
    tl.store(out + tl.program_id(0), total)


class Processes(unittest.TestCase):

    def test_interrupts(self):
        out = zeros(1000)

        def later(work):
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            work()
            timer.join()

        begin = time.perf_counter()
        for _ in range(2):
            with self.assertRaises(KeyboardInterrupt): later(lambda: spin[(1000, )](out, 2**31 - 1))
        # A handler of the program's own is called too; what was to be computed is lost all the same.
        heard = []
        before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
        try:
            with self.assertRaisesRegex(KeyboardInterrupt, "'spin' was stopped; what it wrote is incomplete"):
                later(lambda: spin[(1000, )](out, 2**31 - 1))
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(heard, [1])
        self.assertLess(time.perf_counter() - begin, 60)  # they would take hours
        put[1](out, 2.5)
        self.assertEqual(float(out[0]), 2.5)

    def test_interrupts_of_a_launch_that_has_just_begun(self):
        # In a process of its own, whose handler of SIGINT nobody has set yet.
        text = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from jit_processes_test import kiln, spin, zeros
out, begins = zeros(1000), threading.Event()
spin[(0, )](out, 2**31 - 1)  # compiles
def interrupt():
    begins.wait()
    time.sleep(0.002)
    os.kill(os.getpid(), signal.SIGINT)
for _ in range(5):
    begins.clear()
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        begins.set()
        spin[(1000, )](out, 2**31 - 1)
        sys.exit("no interrupt")
    except KeyboardInterrupt:
        pass
    thread.join()
"""
        subprocess.run([sys.executable, "-c", text, os.path.dirname(__file__)], check=True, timeout=60)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_children_of_a_fork_launch(self):
        # Also where another thread was in a launch, which the child then has not: of kernels with and without scratch.
        x, out, ends, squared = zeros(1 << 16) + 1, zeros(1 << 16), False, kiln.jit(square.fn)

        def launch(out):
            scale[1024](x, out, 1 << 16)
            squared[100](x, out)

        def work():
            mine = zeros(1 << 16)
            while not ends: launch(mine)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of Python's, about threads
                for _ in range(10):
                    child = os.fork()
                    if child == 0:
                        signal.alarm(30)
                        launch(out)
                        os._exit(0 if out.tolist()[-1] == 2 and out.tolist()[0] == 16 else 3)
                    self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            ends = True
            thread.join()

    def test_daemon_threads_do_not_stop_the_end(self):
        code = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from jit_test import scale, zeros
def work():
    x, out = zeros(1 << 16), zeros(1 << 16)
    while True: scale[1 << 10](x, out, 1 << 16)
for _ in range(4): threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__)],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()

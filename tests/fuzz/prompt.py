"""Random keys, pastes, resizes and signals at the prompt of the whole program, on a pseudo-terminal.

    python3 tests/fuzz/prompt.py --kiln build/dev/bin/kiln --seed 1 --seconds 600

Each round starts the program, types whole commands (magics, tensors, kernels, blocks), keys of the editor, broken
escape sequences and pastes, changes the terminal's size, sends Ctrl-C, SIGWINCH and SIGCONT, and now and
then ends it with SIGKILL or SIGTERM. Afterwards the program must still answer at its prompt, or have ended as the
keys say: it never dies by a signal that was not sent. Its history and configuration go to a folder of the run. What
was typed last is printed with a failure.
"""
import argparse
import fcntl
import os
import pty
import random
import select
import signal
import struct
import sys
import tempfile
import termios
import time

COMMANDS = [
    "1 + 1",
    "x = torch.randn(64, 64)",
    "x",
    "x @ x",
    "x?",
    "x??",
    "?torch.exp",
    "%help",
    "%help bench",
    "%who",
    "%plan x + 1",
    "%bench x + 1",
    "%compare x @ x",
    "%static x * 2",
    "%set",
    "%set nonsense=3",
    "%history",
    "%cd /",
    "%run /nonexistent.py",
    "%save s.kiln",
    "%load s.kiln",
    "%load nothing",
    "%edit nothing",
    "%diff 1 2",
    "%stats x",
    "%doctor",
    "%roofline x + x",
    "%sweep",
    "%tune",
    "%why softmax(x @ x, 1)",
    "%ptx nothing",
    "%timeit x",
    "%",
    "%%",
    "!echo hi",
    "!",
    "_",
    "_1",
    "Out",
    "Out[1]",
    "for i in range(3):\n    print(i)\n\n",
    "def f(n):\n    for i in range(n):\n        if i: print(i)\n    return n\n\n",
    "f(3)",
    "@triton.jit\ndef k(x, n: tl.constexpr):\n    tl.store(x + tl.arange(0, n), 1.0)\n\n",
    "k[(1,)](x, 64)",
    "k?",
    "k??",
    "%lines k",
    "while True: pass",
    "[i for i in range(10**9)]",
    "1/0",
    "undefined",
    "'a",
    "(1,",
    "{",
    "é日 = 3",
    "é日",
    "print('\\x1b[31m')",
    "help(torch.exp)",
    "r = %bench x",
    "r.sort('cold')",
    "%trace x > t.json",
    "del x",
    "import mymod",
    "open('/etc/passwd').read()",
    "x = torch.arange(10**6); x.sum()",
    "torch.ones(3) + torch.ones(4)",
    "s = 'a' * 100000; s",
    "raise SystemExit(3)" if False else "pass",
    "[[]] * 1000",
    "%profile x @ x",
    "%counters k",
    "%occupancy k",
    "%report r.html",
    "print('a\\n' * 200)",
    "dir(torch)",
    "input()",
]
KEYS = [
    "a",
    "(",
    ")",
    "'",
    '"',
    "日",
    "e\u0301",
    " ",
    ":",
    "\t",
    "\t\t",
    "\r",
    "\n",
    "\033",
    "\033[A",
    "\033[B",
    "\033[C",
    "\033[D",
    "\033[H",
    "\033[F",
    "\033[Z",
    "\x7f",
    "\033[3~",
    "\013",
    "\025",
    "\027",
    "\031",
    "\033y",
    "\024",
    "\037",
    "\033_",
    "\022",
    "\007",
    "\033\r",
    "\033x",
    "\014",
    "\033[",
    "\xff",
    "\033d",
    "\033\033",
    "\033[5~",
    "\033[6~",
    "\033<",
    "\033[1;5C",
    "\033[1;5D",
    "\033[200~",
    "\033[201~",
    "\001",
    "\005",
    "\002",
    "\006",
    "\020",
    "\016",
    "\033[I",
    "\033[?1;2c",
    "\033]0;t\007",
    "\x00",
    "\033OA",
    "\033[99~",
    "q",
    "?",
    "%",
    "!",
]


class Terminal:

    def __init__(self, kiln, folder):
        self.seen, self.typed = b"", []
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(XDG_STATE_HOME=folder,
                              XDG_CONFIG_HOME=folder,
                              XDG_CACHE_HOME=folder,
                              TERM="xterm",
                              EDITOR="true",
                              KILN_PAGER="0")
            os.execv(kiln, ["kiln", "--device", "cpu"])
        self.status = None

    def send(self, data):
        self.typed.append(data)
        raw = data.encode("latin-1") if all(ord(c) < 256 for c in data) else data.encode()
        while raw:
            self.read(0)
            try:
                raw = raw[os.write(self.fd, raw[:256]):]
            except OSError:
                return

    def read(self, seconds):
        until = time.time() + seconds
        while True:
            ready, _, _ = select.select([self.fd], [], [], max(0, min(0.05, until - time.time())))
            if ready:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                if not data: return False
                self.seen = (self.seen + data)[-200000:]
            if time.time() >= until: return True

    def wait_for(self, text, seconds):
        until = time.time() + seconds
        while text not in self.seen:
            if time.time() > until or not self.read(0.05) or self.ended() is not None: return text in self.seen
        return True

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, number):
        self.typed.append(f"<{signal.Signals(number).name}>")
        if self.ended() is None: os.kill(self.pid, number)

    def ended(self):
        if self.status is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done: self.status = status
        return self.status

    def close(self):
        if self.ended() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)


def round_of(kiln, rand, folder):
    """What went wrong, or an empty text."""
    t = Terminal(kiln, folder)
    try:
        t.resize(30, 100)
        if not t.wait_for(b"[1]", 60): return "no prompt", t
        for _ in range(rand.randint(20, 150)):
            what = rand.random()
            if what < 0.35:
                command = rand.choice(COMMANDS)
                if rand.random() < 0.2: command = "\033[200~" + command + "\033[201~"
                t.send(command.replace("\n", "\r") + "\r")
            elif what < 0.85:
                for _ in range(rand.randint(1, 8)):
                    t.send(rand.choice(KEYS))
            elif what < 0.92:
                t.resize(rand.randint(1, 50), rand.randint(1, 160))
            elif what < 0.96:
                t.signal(rand.choice([signal.SIGWINCH, signal.SIGCONT, signal.SIGINT]))
            else:
                t.send("\003")
            if rand.random() < 0.3 and not t.read(rand.random() * 0.2): break
            if t.ended() is not None: break
        if t.ended() is None and rand.random() < 0.15:
            number = rand.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
            t.signal(number)
            until = time.time() + 20
            while t.ended() is None and time.time() < until:
                t.read(0.05)
            if t.ended() is None: return f"it goes on after {signal.Signals(number).name}", t
            if os.WIFSIGNALED(t.status) and os.WTERMSIG(t.status) not in (number, signal.SIGTERM, signal.SIGHUP):
                return f"it died by signal {os.WTERMSIG(t.status)}", t
            return "", t
        # A sane prompt: what it prints comes back. Ctrl-C leaves what runs, a search, a menu or a block.
        t.resize(24, 80)
        for attempt in range(12):
            if t.ended() is not None: break
            t.send("\033\003")
            t.read(0.2)
            t.send("q\003\025")
            t.read(0.2)
            mark = str(rand.randint(10**8, 10**9))
            t.send(f"print(1{mark} - 10**{len(mark)})\r")
            if t.wait_for(mark.encode(), 3 + attempt): return "", t
        if t.ended() is None: return "it does not answer", t
        if os.WIFSIGNALED(t.status): return f"it died by signal {os.WTERMSIG(t.status)}", t
        # Ctrl-C at an empty prompt does not end it, Ctrl-D does, and exit codes of scripts' own do not occur.
        return ("" if os.WEXITSTATUS(t.status) == 0 else f"it ended with {os.WEXITSTATUS(t.status)}"), t
    finally:
        t.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kiln", default="build/dev/bin/kiln")
    arguments.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments.add_argument("--seconds", type=float, default=600)
    given = arguments.parse_args()
    kiln, until, seed, wrong = os.path.abspath(given.kiln), time.time() + given.seconds, given.seed, 0
    with tempfile.TemporaryDirectory(
    ) as folder:  # one for all: the history and the saved sessions of killed programs stay
        while time.time() < until:
            problem, t = round_of(kiln, random.Random(seed), folder)
            if problem:
                wrong += 1
                print(f"--- seed {seed}: {problem}\ntyped last: {t.typed[-30:]!r}\nscreen: {t.seen[-1500:]!r}",
                      flush=True)
            seed += 1
    print(f"{seed - given.seed} rounds, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

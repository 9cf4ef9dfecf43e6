"""platform: what this machine is."""
import os as _os


def system(): return "Linux"
def machine(): return _os.uname()[4]
def node(): return _os.uname()[1]
def release(): return _os.uname()[2]
def processor(): return machine()
def python_version(): return "3.11.0"
def python_implementation(): return "Kiln"
def platform(*args): return f"Linux-{release()}-{machine()}"

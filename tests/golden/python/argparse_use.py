import argparse
def main(argv=None):
    p = argparse.ArgumentParser(description="bench", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--m", type=int, default=128, help="rows")
    p.add_argument("-n", "--name", type=str, default="x", choices=["x","y"])
    p.add_argument("--verbose", "-v", action="store_true")
    p.add_argument("--sizes", nargs="+", type=int, default=[1,2])
    p.add_argument("file", nargs="?", default="f")
    a = p.parse_args(argv)
    print(a.m, a.name, a.verbose, a.sizes, a.file, a)
if __name__ == "__main__":
    main([]); main(["--m=3","-n","y","-v","--sizes","3","4","--","q"])

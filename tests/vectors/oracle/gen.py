"""Writes every vector file: `python3 tests/vectors/oracle/gen.py [NAME...]`. The same values every time."""
import importlib
import sys

MODULES = "integer logic floating comparing converting approximate video memory warps legacy".split()


def main():
    wanted = set(sys.argv[1:])
    total = [0, 0, 0]
    for module in MODULES:
        for make in importlib.import_module(module).SUITES:
            if wanted and make.__name__ not in wanted and module not in wanted:
                continue
            suite = make()
            counts = suite.write()
            print("%-18s %5d forms %6d vectors %7d results" % ((suite.name,) + counts))
            total = [x + y for x, y in zip(total, counts)]
    print("%-18s %5d forms %6d vectors %7d results" % (("all",) + tuple(total)))


if __name__ == "__main__":
    main()

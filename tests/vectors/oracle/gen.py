"""Writes every vector file: `python3 tests/vectors/oracle/gen.py [NAME...]`. The same values every time.

`--seed TEXT --into DIR` writes other random values elsewhere, for a longer search:
`PTXVM_VECTORS=DIR cargo test -p ptxvm --test vectors` runs them.
"""
import argparse
import importlib
from pathlib import Path

import form
import samples

MODULES = "integer logic floating comparing converting approximate bfloat newer matrices tiny wide video memory warps legacy machine constant spelling operand declaration".split()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", default=samples.SEED)
    parser.add_argument("--into", type=Path, default=form.ROOT)
    args = parser.parse_args()
    wanted, samples.SEED, form.ROOT = set(args.names), args.seed, args.into
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

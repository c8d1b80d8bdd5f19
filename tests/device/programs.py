#!/usr/bin/env python3
"""Runs random programs on a GPU, through the driver API, and compares what they leave in memory.

    cargo xtask agree --print --seed 1 --count 2000 > programs.txt
    python3 programs.py programs.txt --library libptxvm_cuda.so --write ptxvm.z
    python3 programs.py programs.txt --library libcuda.so.1 --against ptxvm.z

The first run keeps the memory after each program, the second compares with it. The report, one line per fact
with tabs between the fields; SEED numbers a program, starting at `--seed` (1):

    device   NAME   DRIVER
    refused  SEED   the driver's message
    trapped  SEED   status
    differs  SEED   BUFFER   BYTE   HAVE   EXPECTED   (the first difference, and how many words differ)
    same     COUNT
    skipped  COUNT

Programs are skipped if they use what the manual leaves to the device: approximations, clocks.
"""
import ctypes
import pathlib
import pickle
import re
import zlib

from driver import Driver, in_processes, options

# As in `xtask/src/agree/run.rs`.
SLOT = 384
INPUT = 1 << 16
COLUMNS = (8 * 16 + 160) * 2048
COMMON, WARP, CELL = 4096, 128, 128
# Programs of a process.
PART = 50
PATIENCE = 120
OF_DEVICE = re.compile(r"\.approx|div\.full|%clock")
MASK = (1 << 64) - 1


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed * 0x9E3779B97F4A7C15 & MASK

    def next(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & MASK
        value = self.state
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
        return value ^ value >> 31

    def value(self, bits):
        """A number, often one at an edge of the integers or floats of its width."""
        choice = self.next()
        number = self.next() & (1 << bits) - 1
        one, infinity = {16: (0x3C00, 0x7C00), 32: (0x3F800000, 0x7F800000), 64: (0x3FF << 52, 0x7FF << 52)}[bits]
        edges = [0, 1, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1, one, infinity, infinity + 1]
        if choice % 4 == 0:
            return edges[choice // 4 % len(edges)] ^ (choice >> 20 & 1) << bits - 1
        if choice % 4 == 1:
            return number >> choice // 4 % bits
        if choice % 4 == 2:
            # A float near one.
            return (one + (number & one // 4)) ^ (choice >> 20 & 1) << bits - 1
        return number

    def fill(self, size):
        data = bytearray()
        while len(data) < size:
            bits = [16, 32, 64][len(data) // 64 % 3]
            for _ in range(64 * 8 // bits):
                data += self.value(bits).to_bytes(bits // 8, "little")
        return bytes(data[:size])


def parse(text):
    """The programs of a text: grid, block, seed of the data, bytes of the columns, PTX."""
    for part in text.split("// agree: ")[1:]:
        head, ptx = part.split("\n", 1)
        numbers = [int(word) for word in head.split() if word.isdigit()]
        columns = numbers[7] if len(numbers) > 7 else COLUMNS
        yield numbers[:3], numbers[3:6], numbers[6], columns, ptx


def run_one(driver, program):
    """The memory that a program leaves, or a word and a message."""
    grid, block, seed, columns, ptx = program
    threads, ctas = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
    random = Random(seed)
    given = random.fill(INPUT)
    common = random.fill(COMMON + WARP * (-(-threads // 32) * ctas)) + bytes(CELL * ctas)
    values = [ctypes.c_uint32(random.value(32)), ctypes.c_uint32(random.value(32)), ctypes.c_uint64(random.next())]
    module, why = driver.load(ptx)
    if module is None:
        return "refused", why
    sizes = [threads * ctas * SLOT, columns, len(common)]
    out, source, rows, shared = buffers = [
        driver.buffer(data) for data in (bytes(sizes[0]), given, bytes(columns), common)
    ]
    status = driver.run(module, "main", grid, block, [*buffers, *values])
    if status:
        return "trapped", str(status)
    left = [driver.read(place, size) for place, size in zip((out, rows, shared), sizes)]
    for place in buffers:
        driver.free(place)
    driver.call("cuModuleUnload", module)
    return left


def run_part(numbered, library):
    """The results of programs up to the first that traps."""
    driver = Driver(library)
    results = []
    for _, program in numbered:
        results.append(run_one(driver, program))
        if results[-1][0] == "trapped":
            break
    return results


def difference(have, expected):
    for name, ours, theirs in zip(("out", "columns", "common"), have, expected):
        if ours != theirs:
            words = [at for at in range(0, len(ours), 8) if ours[at : at + 8] != theirs[at : at + 8]]
            at = words[0]
            pair = [int.from_bytes(data[at : at + 8], "little") for data in (ours, theirs)]
            yield [name, str(at), f"{pair[0]:016x}", f"{pair[1]:016x}", str(len(words))]


def main():
    known = {"--library": "libcuda.so.1", "--jobs": "4", "--write": "", "--against": "", "--seed": "1"}
    given, files = options(__doc__, known)
    programs = [program for path in files for program in parse(pathlib.Path(path).read_text())]
    first = int(given["--seed"])
    numbered = [(first + at, program) for at, program in enumerate(programs)]
    kept = [(seed, program) for seed, program in numbered if not OF_DEVICE.search(program[4])]
    tasks = [kept[at : at + PART] for at in range(0, len(kept), PART)]
    results = {}
    for part, answer in in_processes(run_part, tasks, given["--library"], int(given["--jobs"]), PATIENCE):
        if isinstance(answer, str):
            # Which of the programs it was is not known: each has a process of its own.
            if len(part) == 1:
                results[part[0][0]] = ("trapped", answer)
            else:
                tasks.extend([numbered] for numbered in part)
            continue
        for (seed, _), result in zip(part, answer):
            results[seed] = result
        if len(answer) < len(part):
            tasks.append(part[len(answer) :])
    print("\t".join(["device", *Driver(given["--library"]).about()]))
    same = 0
    expected = {}
    if given["--against"]:
        expected = pickle.loads(zlib.decompress(pathlib.Path(given["--against"]).read_bytes()))
    for seed, result in sorted(results.items()):
        if isinstance(result, tuple):
            print("\t".join([result[0], str(seed), result[1]]))
        elif seed in expected and not isinstance(expected[seed], tuple):
            lines = list(difference(result, expected[seed]))
            same += not lines
            for line in lines:
                print("\t".join(["differs", str(seed), *line]))
    print(f"same\t{same}\nskipped\t{len(programs) - len(kept)}")
    if given["--write"]:
        if expected:
            results = {seed: have for seed, have in results.items() if have != expected.get(seed)}
        pathlib.Path(given["--write"]).write_bytes(zlib.compress(pickle.dumps(results)))


if __name__ == "__main__":
    main()

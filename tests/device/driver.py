"""The driver API through ctypes, and work in processes of their own, for the scripts of this folder."""
import ctypes
import multiprocessing
import multiprocessing.connection
import sys


class Driver:
    """The few functions of the driver API that this needs."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.ok("cuInit", 0)
        self.device = ctypes.c_int()
        self.ok("cuDeviceGet", ctypes.byref(self.device), 0)
        self.context = ctypes.c_void_p()
        self.ok("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.ok("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def ok(self, name, *arguments):
        status = self.call(name, *arguments)
        if status:
            raise RuntimeError(f"{name} returns {status}")

    def about(self):
        name = ctypes.create_string_buffer(100)
        self.ok("cuDeviceGetName", name, 100, self.device)
        version = ctypes.c_int()
        self.ok("cuDriverGetVersion", ctypes.byref(version))
        return name.value.decode(), str(version.value)

    def load(self, text):
        """The module of a text, or the driver's message."""
        log = ctypes.create_string_buffer(4096)
        keys = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module = ctypes.c_void_p()
        status = self.call("cuModuleLoadDataEx", ctypes.byref(module), text.encode(), 2, keys, values)
        if status:
            message = " ".join(log.value.decode(errors="replace").split())
            return None, f"{status} {message[:300]}"
        return module, None

    def run(self, module, name, grid, block, arguments):
        """Launches a kernel and waits for it; returns the status."""
        function = ctypes.c_void_p()
        status = self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if status:
            return status
        values = [argument for argument in arguments]
        places = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        sizes = list(grid) + list(block)
        status = self.call("cuLaunchKernel", function, *sizes, 0, None, places, None)
        return status or self.call("cuCtxSynchronize")

    def buffer(self, data):
        place = ctypes.c_uint64()
        self.ok("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(len(data), 8)))
        self.ok("cuMemcpyHtoD_v2", place, data, ctypes.c_size_t(len(data)))
        return place

    def read(self, place, size):
        data = ctypes.create_string_buffer(size)
        self.ok("cuMemcpyDtoH_v2", data, place, ctypes.c_size_t(size))
        return data.raw

    def free(self, place):
        self.ok("cuMemFree_v2", place)


def options(usage, known):
    """The options of the command line, with these values if it does not give them, and its other words."""
    words, rest = sys.argv[1:], []
    given = dict(known)
    while words:
        word = words.pop(0)
        if word in known and words:
            given[word] = words.pop(0)
        elif word.startswith("-"):
            sys.exit(usage)
        else:
            rest.append(word)
    return given, rest


def send(function, task, library, pipe):
    """Runs in the process: sends the result of a task."""
    pipe.send(function(task, library))


def in_processes(function, tasks, library, jobs, patience):
    """Yields each task with the result of `function(task, library)`, or with a text where the process ended or
    none of the running ones had a result within `patience` seconds. Each task has a process of its own, since
    after most traps no other context works in the process; the caller may append what is left to `tasks`."""
    context = multiprocessing.get_context("spawn")
    running = []
    while tasks or running:
        while tasks and len(running) < jobs:
            task = tasks.pop(0)
            ours, theirs = context.Pipe(False)
            process = context.Process(target=send, args=(function, task, library, theirs))
            process.start()
            theirs.close()
            running.append((task, ours, process))
        ready = multiprocessing.connection.wait([ours for _, ours, _ in running], patience)
        for entry in [entry for entry in running if not ready or entry[1] in ready]:
            task, ours, process = entry
            answer = "no result in time"
            if ready:
                try:
                    answer = ours.recv()
                except EOFError:
                    answer = "the process ended"
            else:
                process.kill()
            process.join()
            running.remove(entry)
            yield task, answer

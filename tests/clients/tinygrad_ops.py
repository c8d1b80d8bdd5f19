"""tinygrad on the CUDA device with PTX of its own renderer: tensor operations against numpy."""
import itertools, sys
import numpy as np
from tinygrad import Tensor, Device, dtypes, TinyJit

assert Device.DEFAULT == "CUDA", Device.DEFAULT
rng = np.random.default_rng(7)
done = failed = 0


def check(name, got, want, rtol=2e-5, atol=2e-6):
    global done, failed
    done += 1
    try:
        got = got() if callable(got) else got
        np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=atol)
    except Exception as error:  # each operation is one case
        failed += 1
        print(f"FAILED {name}: {str(error).strip().splitlines()[0] if str(error).strip() else repr(error)}")


def floats(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(np.float32)


a, b = floats(45, 65), floats(45, 65)
unary = {
    "neg": lambda x: -x, "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "square": np.square, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round,
    "relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), 
    "softplus": lambda x: np.log1p(np.exp(x)), "silu": lambda x: x / (1 + np.exp(-x)), "sinh": np.sinh, "cosh": np.cosh,
}
mild = a / 2  # away from the poles of the tangent
for name, reference in unary.items():
    check(name, lambda: getattr(Tensor(a), name)(), reference(a), rtol=1e-4, atol=1e-5)
check("tan", lambda: Tensor(mild).tan(), np.tan(mild), rtol=1e-4, atol=1e-5)
positive = floats(45, 65, low=0.01, high=9)
for name, reference in {"sqrt": np.sqrt, "log": np.log, "log2": np.log2, "rsqrt": lambda x: 1 / np.sqrt(x),
                        "reciprocal": lambda x: 1 / x}.items():
    check(name, lambda: getattr(Tensor(positive), name)(), reference(positive), rtol=1e-4, atol=1e-5)
binary = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum,
}
for name, reference in binary.items():
    check(name, lambda: getattr(Tensor(a), name)(Tensor(b)), reference(a, b))
    check(name + " broadcast", lambda: getattr(Tensor(a), name)(Tensor(b[:1])), reference(a, b[:1]))
for name, (op, reference) in {"lt": (lambda x, y: x < y, np.less), "eq": (lambda x, y: x == y, np.equal),
                              "ne": (lambda x, y: x != y, np.not_equal), "ge": (lambda x, y: x >= y, np.greater_equal)}.items():
    check(name, lambda: op(Tensor(a), Tensor(np.round(b))), reference(a, np.round(b)))
check("pow", lambda: Tensor(positive) ** 1.7, positive ** 1.7, rtol=1e-4)
check("where", lambda: (Tensor(a) > 0).where(Tensor(a), Tensor(b)), np.where(a > 0, a, b))

ints = rng.integers(-1000, 1000, (33, 17)).astype(np.int32)
more = rng.integers(1, 40, (33, 17)).astype(np.int32)
for name, op in {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "add": lambda x, y: x + y,
                 "mul": lambda x, y: x * y, "floordiv": lambda x, y: x // y, "mod": lambda x, y: x % y}.items():
    check("int " + name, lambda: op(Tensor(ints), Tensor(more)), op(ints, more))
check("shl", lambda: Tensor(np.abs(ints).astype(np.uint32)) << 3, np.abs(ints).astype(np.uint32) << 3)
check("shr", lambda: Tensor(np.abs(ints).astype(np.uint32)) >> 2, np.abs(ints).astype(np.uint32) >> 2)

kinds = [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8,
         dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.bool]
small = rng.integers(0, 100, 300)
for source, target in itertools.product(kinds, kinds):
    from_np, to_np = np.dtype(source.fmt), np.dtype(target.fmt)
    check(f"cast {source} {target}", lambda: Tensor(small.astype(from_np)).cast(target), small.astype(from_np).astype(to_np))

for axis in [None, 0, 1]:
    for name, reference in {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean, "prod": np.prod}.items():
        check(f"{name} {axis}", lambda: getattr(Tensor(a), name)(axis=axis), reference(a, axis=axis), rtol=1e-4, atol=1e-4)
    check(f"argmax {axis}", lambda: Tensor(a).argmax(axis=axis), np.argmax(a, axis=axis))
big = floats(1 << 18, low=-1, high=1)
check("large sum", lambda: Tensor(big).sum(), big.astype(np.float64).sum(), rtol=1e-3, atol=1e-1)
check("cumsum", lambda: Tensor(a).cumsum(1), np.cumsum(a, 1), rtol=1e-4, atol=1e-4)
check("var", lambda: Tensor(a).var(1), a.var(1, ddof=1), rtol=1e-4)
exps = np.exp(a - a.max(1, keepdims=True))
check("softmax", lambda: Tensor(a).softmax(1), exps / exps.sum(1, keepdims=True), rtol=1e-4)

for m, k, n in [(1, 1, 1), (7, 13, 5), (64, 64, 64), (33, 100, 70), (128, 128, 128)]:
    x, y = floats(m, k), floats(k, n)
    check(f"matmul {m} {k} {n}", lambda: Tensor(x) @ Tensor(y), x @ y, rtol=1e-4, atol=1e-4)
half = floats(32, 32).astype(np.float16)
check("half matmul", lambda: Tensor(half) @ Tensor(half), (half.astype(np.float32) @ half.astype(np.float32)), rtol=2e-2, atol=2e-2)
x, w = floats(2, 3, 11, 12), floats(4, 3, 3, 3)
want = np.zeros((2, 4, 9, 10), np.float32)
for i, j in itertools.product(range(9), range(10)):
    want[:, :, i, j] = np.einsum("nchw,ochw->no", x[:, :, i:i + 3, j:j + 3], w)
check("conv2d", lambda: Tensor(x).conv2d(Tensor(w)), want, rtol=1e-4, atol=1e-4)
check("max_pool2d", lambda: Tensor(x).max_pool2d(2), x[:, :, :10, :].reshape(2, 3, 5, 2, 6, 2).max((3, 5)))
check("permute", lambda: Tensor(x).permute(3, 1, 0, 2).contiguous(), x.transpose(3, 1, 0, 2))
check("flip", lambda: Tensor(a).flip(0).contiguous(), a[::-1])
check("pad", lambda: Tensor(a).pad(((1, 2), (3, 4))), np.pad(a, ((1, 2), (3, 4))))
check("cat", lambda: Tensor(a).cat(Tensor(b), dim=1), np.concatenate([a, b], 1))
check("slice", lambda: Tensor(a)[3:40:2, 5:60].contiguous(), a[3:40:2, 5:60])
index = rng.integers(0, 45, 20)
check("gather", lambda: Tensor(a)[Tensor(index)], a[index])
check("sort", lambda: Tensor(a[0]).sort()[0], np.sort(a[0]))
check("arange", lambda: Tensor.arange(1000) + Tensor(index[:1]), np.arange(1000) + index[0])
check("eye", lambda: Tensor.eye(17) + Tensor(index[:1]), np.eye(17) + index[0])

# Gradients, a training step, random numbers, and a captured function.
p, q = Tensor(a), Tensor(b)
check("gradient", lambda: (p * q).tanh().sum().gradient(p)[0], b * (1 - np.tanh(a * b) ** 2), rtol=1e-3, atol=1e-4)
Tensor.manual_seed(3)
noise = Tensor.rand(10000).numpy()
assert 0.48 < noise.mean() < 0.52 and noise.min() >= 0 and noise.max() < 1, noise


@TinyJit
def step(x):
    return (x * 2 + 1).realize()


@TinyJit
def layers(x, weights):
    hidden = (x @ weights).relu()
    return (hidden.softmax(1) @ weights.T).realize(), hidden.sum(0).realize()


weights = floats(65, 30)
for count in range(5):
    x = a + count
    hidden = np.maximum(x @ weights, 0)
    exps = np.exp(hidden - hidden.max(1, keepdims=True))
    got = layers(Tensor(x).realize(), Tensor(weights).realize())
    check(f"jit of layers {count}", lambda: got[0], exps / exps.sum(1, keepdims=True) @ weights.T, rtol=1e-3, atol=1e-3)
    check(f"jit of layers {count}", lambda: got[1], hidden.sum(0), rtol=1e-3, atol=1e-3)

for count in range(5):
    check(f"jit {count}", lambda: step(Tensor(a + count).realize()), (a + count) * 2 + 1)

print(f"{done - failed} of {done} operations")
sys.exit(failed != 0)

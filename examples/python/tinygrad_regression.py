"""tinygrad on its CUDA device: a line is fitted to points by gradient descent."""

import numpy as np
from tinygrad import Context, Device, Tensor
from tinygrad.nn.optim import SGD

rng = np.random.default_rng(1)
x = rng.random((200, 1), np.float32)
y = 3 * x - 1 + rng.normal(0, 0.01, x.shape).astype(np.float32)

slope, offset = Tensor([[0.0]]), Tensor([0.0])
points, wanted = Tensor(x), Tensor(y)
optimizer = SGD([slope, offset], lr=0.5)
with Context(TRAINING=1):
    for _ in range(200):
        optimizer.zero_grad()
        ((points @ slope + offset - wanted) ** 2).mean().backward()
        optimizer.step()

found = np.array([slope.item(), offset.item()])
best = np.polyfit(x[:, 0], y[:, 0], 1)
print(f"{Device.DEFAULT}: y = {found[0]:.2f} x {found[1]:+.2f}")
np.testing.assert_allclose(found, best, atol=0.01)

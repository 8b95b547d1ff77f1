"""The sizes that data is tested at, without torch: pages and tables need nothing else."""

MNIST_SIZES = tuple(2 ** (k / 4) for k in range(-4, 13))  # 1/2 to 8
CIFAR_SIZES = tuple(2 ** (k / 4) for k in range(-4, 5))  # 1/2 to 2
OWN_SIZES = tuple(2 ** (k / 4) for k in range(-8, 9))  # 1/4 to 4

"""The sizes that the paper's data sets are tested at, without torch: pages and tables need nothing else."""

MNIST_SIZES = tuple(2 ** (k / 4) for k in range(-4, 13))  # 1/2 to 8
CIFAR_SIZES = tuple(2 ** (k / 4) for k in range(-4, 5))  # 1/2 to 2


def size_name(size: float) -> str:
    """At most three decimals, as the files of MNIST Large Scale name their sizes: 0.5, 1.189, 8."""
    return f"{size:.3f}".rstrip("0").rstrip(".")

"""ScaleInvariantClassifier: the library as an estimator of scikit-learn."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from scalechannels.data.arrays import ImageArrays
from scalechannels.estimator.bases import BaseEstimator, ClassifierMixin
from scalechannels.estimator.inputs import (
    LISTED,
    Range,
    count_axes,
    is_listed,
    kind_of,
    listed,
    shape_of_rows,
    stacked,
    tensors,
)
from scalechannels.estimator.learning import learn, probabilities, run_config

if TYPE_CHECKING:
    from typing_extensions import Self

SEEDS = 2**31 - 1


class ScaleInvariantClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of images in arrays, for objects of sizes that `fit` was never shown.

    It is trained as `scalechannels train --data FOLDER --training.epochs …` trains on files of these pixels.
    Images come as (N, H, W) or (N, H, W, 3), as flat rows (N, H*W) of square grey images, or as a list or an
    object array of images of any sizes. `predict` takes other sizes than `fit`, except of flat rows. Labels
    are of any type.

    network       "scale channels", "scale channels everywhere" for objects off the centre, "resized CNN" or
                  "augmented CNN", as `train` offers them
    sizes         the sizes that objects will have, from low to high, where 1 is their size in `fit`
    epochs        passes over the images; None: as many as make some hundred steps
    validation_fraction    the share of each class that is not trained on but calibrates the probabilities; 0
                  for none, which leaves them as they are
    image_shape   (H, W) or (H, W, 3) of flat rows; None: square and grey
    value_range   the values of black and white; None: by the type, 0 to 255 for uint8, 0 to 1 for floats
    options       further options of `scalechannels train`, tables as in its config file:
                  {"training": {"flips": True}, "data": {"images": "frames"}}
    device        of PyTorch, such as "cuda"; None: a GPU where there is one
    random_state  a number, a RandomState or None; a number is the seed that `--training.seed` is
    verbose       show a progress bar, on a terminal

    After `fit`: `classes_`; `network_`, the network in eval mode, which is saved, exported and explained as
    any other; `loss_curve_` and `n_iter_`; `value_range_`; and, of flat rows, `n_features_in_`.

    Law: arrays of another type, range or number of colours than those of `fit` are an error. Limit: a mistake
    that stays within the range is not seen. scikit-learn's checks of estimators are for tables: those that no
    classifier of images can pass are in `NOT_FOR_IMAGES`, each with its reason.

    Example:
        >>> import numpy as np
        >>> from scalechannels import ScaleInvariantClassifier
        >>> bars = np.random.default_rng(0).integers(0, 60, (20, 16, 16), np.uint8)  # (N, H, W)
        >>> bars[:10, 3:13, 7:9], bars[10:, 7:9, 3:13] = 255, 255
        >>> labels = ["upright"] * 10 + ["lying"] * 10
        >>> few = {"network": {"ratio": 2.0}}                   # six channels: quick
        >>> classifier = ScaleInvariantClassifier(sizes=(1, 2), epochs=20, options=few, random_state=0)
        >>> larger = np.kron(bars[[0, -1]], np.ones((2, 2), np.uint8))
        >>> classifier.fit(bars, labels).predict(larger)        # images twice as large
        array(['upright', 'lying'], dtype='<U7')
    """

    def __init__(
        self,
        network: str = "scale channels",
        *,
        sizes: tuple[float, float] = (0.25, 4.0),
        epochs: int | None = None,
        validation_fraction: float = 0.2,
        image_shape: tuple[int, ...] | None = None,
        value_range: Range | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        device: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.network = network
        self.sizes = sizes
        self.epochs = epochs
        self.validation_fraction = validation_fraction
        self.image_shape = image_shape
        self.value_range = value_range
        self.options = options
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on images X and their classes y (N,); the classifier itself."""
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None")
        given = self._checked(X, fitting=True)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_consistent_length(given, labels)
        check_classification_targets(labels)
        classes, places = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have two or more classes; got 1 class, {classes.tolist()[0]!r}")
        images = self._images(given)
        kind = kind_of(images, self.value_range)
        names = [str(name) for name in classes]
        arrays = ImageArrays.of(tensors(images, kind), places.tolist(), names, self._held_out())
        seed, device = self._seed(), self._device()
        said: dict[str, dict[str, Any]] = {
            "data": {"range": self.sizes, "seed": seed},
            "training": {"epochs": self.epochs, "seed": seed},
        }
        config = run_config(self.options, said)
        learnt = learn(config, arrays, self.network, device, quiet=not self.verbose)
        self.network_, self.loss_curve_ = learnt
        self.n_iter_ = len(self.loss_curve_)
        self.classes_, self.value_range_, self._kind = classes, (kind.low, kind.high), kind
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`: (N, K)."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "network_")
        images, device = self._images(self._checked(X, fitting=False)), self._device()
        network = self.network_ if device.type == "cpu" else copy.deepcopy(self.network_)  # which stays there
        return probabilities(network, tensors(images, self._kind), device).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The class of each image: (N,)."""
        probable = self.predict_proba(X).argmax(1)
        return self.classes_[probable]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _checked(self, X: Any, fitting: bool) -> list[np.ndarray] | np.ndarray:
        """Images one by one, an array of them, or flat rows (N, F), with finite numbers."""
        from sklearn.utils.validation import check_array, validate_data

        if fitting:
            self.__dict__.pop("n_features_in_", None)  # of an earlier fit
        if is_listed(X):
            return listed(X)
        axes = count_axes(X)
        if axes > 2:
            return check_array(X, ensure_2d=False, allow_nd=True)
        if axes == 2 and not fitting and not hasattr(self, "n_features_in_"):
            raise ValueError(
                f"X has the shape {np.shape(X)}, but fit had images and not flat rows: give one image as "
                f"X[None], several as {LISTED}"
            )
        return validate_data(self, X, reset=fitting)

    def _images(self, given: list[np.ndarray] | np.ndarray) -> list[np.ndarray]:
        """The images (H, W) or (H, W, C) of what was given."""
        if isinstance(given, list):
            return given
        return stacked(given) if given.ndim > 2 else self._pictures(given)

    def _pictures(self, rows: np.ndarray) -> list[np.ndarray]:
        """The images that flat rows (N, F) stand for."""
        return list(rows.reshape(len(rows), *shape_of_rows(rows.shape[1], self.image_shape)))

    def _held_out(self) -> float:
        """The share of each class that is not trained on."""
        share = self.validation_fraction
        if not 0 <= share < 1:
            raise ValueError(f"validation_fraction must be 0 or more and below 1; got {share!r}")
        return float(share)

    def _device(self) -> torch.device:
        return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))

    def _seed(self) -> int:
        from sklearn.utils import check_random_state

        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(SEEDS))

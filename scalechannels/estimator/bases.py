"""What the estimator is derived from: scikit-learn's classes, or stand-ins that say what to install.

So `from scalechannels import *` works without scikit-learn, and an estimator is refused when it is made.
"""

from typing import Any

try:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
except ImportError:

    class ClassifierMixin:  # type: ignore[no-redef]
        """In place of scikit-learn's."""

    class BaseEstimator:  # type: ignore[no-redef]
        """In place of scikit-learn's."""

        def __new__(cls, *_: Any, **__: Any) -> Any:
            raise ImportError('scikit-learn is not installed: pip install "scalechannels[sklearn]"')

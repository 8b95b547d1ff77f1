"""Scale-channel networks: recognise objects at sizes they were never trained on."""
from scalechannels.version import __version__
__all__ = ["__version__"]

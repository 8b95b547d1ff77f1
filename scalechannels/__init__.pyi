from scalechannels.backbones.zoo import LibraryBackbone as LibraryBackbone
from scalechannels.constructors import fovavg as fovavg
from scalechannels.constructors import fovconc as fovconc
from scalechannels.constructors import fovlse as fovlse
from scalechannels.constructors import fovmax as fovmax
from scalechannels.constructors import swmax as swmax
from scalechannels.dense import DenseNetwork as DenseNetwork
from scalechannels.detection.detector import Detector as Detector
from scalechannels.invariance import scale_invariance_error as scale_invariance_error
from scalechannels.network import Explanation as Explanation
from scalechannels.network import ScaleChannelNetwork as ScaleChannelNetwork
from scalechannels.plain import PlainNetwork as PlainNetwork
from scalechannels.plain import averaged_over_scales as averaged_over_scales
from scalechannels.plain import cnn as cnn
from scalechannels.pooling import ConcatScales as ConcatScales
from scalechannels.pooling import LogMeanExpOverScales as LogMeanExpOverScales
from scalechannels.pooling import MaxOverScales as MaxOverScales
from scalechannels.pooling import MeanOverScales as MeanOverScales
from scalechannels.pooling import MeanProbabilityOverScales as MeanProbabilityOverScales
from scalechannels.predictor import Predictor as Predictor
from scalechannels.sampling import Foveate as Foveate
from scalechannels.saving.saved_network import load as load
from scalechannels.scales import ScaleGrid as ScaleGrid
from scalechannels.selection import expected_window as expected_window
from scalechannels.selection import scale_contributions as scale_contributions
from scalechannels.selection import selected_scale as selected_scale

__version__: str

"""The public names; `lazy_loader` imports each when it is first used."""

from .bilinear import Bilinear as Bilinear
from .bilinear import EuclideanPotential as EuclideanPotential
from .kl import KL as KL
from .max_difference import MaxDifference as MaxDifference
from .norms import L1 as L1
from .norms import L2 as L2
from .norms import HighNorm as HighNorm
from .norms import LInf as LInf
from .norms import LowNorm as LowNorm
from .protocol import Distance as Distance
from .selection import make as make
from .selection import norm as norm
from .selection import observation_weights as observation_weights
from .selection import optimal_smoothing as optimal_smoothing

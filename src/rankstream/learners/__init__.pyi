"""The public names; `lazy_loader` imports each when it is first used."""

from .players import DualAveraging as DualAveraging
from .players import FollowTheLeader as FollowTheLeader
from .players import MirrorDescent as MirrorDescent
from .players import NaiveFrankWolfe as NaiveFrankWolfe
from .players import StronglyConvexMirrorDescent as StronglyConvexMirrorDescent
from .protocol import Learner as Learner
from .protocol import PowerWeights as PowerWeights
from .selection import make as make
from .selection import match as match

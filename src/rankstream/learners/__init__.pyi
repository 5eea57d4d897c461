"""The public names; `lazy_loader` imports each when it is first used."""

from .frank_wolfe import FollowTheLeader as FollowTheLeader
from .frank_wolfe import NaiveFrankWolfe as NaiveFrankWolfe
from .mirror_descent import DualAveraging as DualAveraging
from .mirror_descent import MirrorDescent as MirrorDescent
from .mirror_descent import StronglyConvexMirrorDescent as StronglyConvexMirrorDescent
from .protocol import Learner as Learner
from .protocol import PowerWeights as PowerWeights
from .selection import make as make
from .selection import match as match

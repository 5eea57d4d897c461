"""The public names; `lazy_loader` imports each when it is first used."""

from . import certificate as certificate
from . import checks as checks
from . import decide as decide
from . import distances as distances
from . import learners as learners
from . import models as models
from . import oracles as oracles
from . import plots as plots
from . import streams as streams
from .certificate import Certificate as Certificate
from .columns.plausible import probability_range as probability_range
from .columns.plausible import revenue_range as revenue_range
from .columns.rationality import rationality as rationality
from .data import simulate as simulate
from .data.assortments import Assortments as Assortments
from .data.attributes import Attributes as Attributes
from .data.attributes import read_attributes as read_attributes
from .data.counts import ChoiceCounts as ChoiceCounts
from .data.counts import with_outside as with_outside
from .data.decay import DecayingCounts as DecayingCounts
from .data.decay import WindowCounts as WindowCounts
from .data.drift import DriftReport as DriftReport
from .data.drift import drift_report as drift_report
from .data.prices import PriceLevels as PriceLevels
from .data.readers import read as read
from .data.readers import read_counts as read_counts
from .data.readers import read_sales as read_sales
from .data.uncertain import UncertainCounts as UncertainCounts
from .decide.best import best_offer as best_offer
from .decide.lost_sales import lost_sales as lost_sales
from .decide.next import next_offer as next_offer
from .decide.safe import safe_offer as safe_offer
from .estimation import methods as methods
from .estimation.estimate import Estimate as Estimate
from .estimation.estimate import estimate as estimate
from .estimation.estimate import fit_within as fit_within
from .estimation.estimator import RankingEstimator as RankingEstimator
from .estimation.intervals import Bootstrap as Bootstrap
from .estimation.many.results import Markets as Markets
from .estimation.many.run import estimate_many as estimate_many
from .estimation.uncertain import availability as availability
from .evaluate.compare import compare as compare
from .evaluate.customer_types import favourite_changes as favourite_changes
from .models.entropy.model import EntropyModel as EntropyModel
from .models.files import load_model as load_model
from .models.rankings import RankingModel as RankingModel
from .reports.make import report as report
from .service.client import Client as Client
from .solver.loop import Solver as Solver
from .streams.detector import ChangeDetector as ChangeDetector
from .streams.live import Live as Live
from .streams.live import Record as Record

__version__: str

__all__: list[str]

"""What other packages use of the data; `lazy_loader` imports each name when it is first used."""

from . import simulate as simulate
from .assortments import Assortments as Assortments
from .assortments import as_offer as as_offer
from .assortments import plain as plain
from .attributes import Attributes as Attributes
from .counts import ChoiceCounts as ChoiceCounts
from .counts import Target as Target
from .counts import as_target as as_target
from .decay import DecayingCounts as DecayingCounts
from .drift import DriftReport as DriftReport
from .drift import drift_report as drift_report
from .observations import contradiction as contradiction
from .observations import observed as observed
from .observations import restrict as restrict
from .order import refuse_order as refuse_order
from .prices import PriceLevels as PriceLevels
from .prices import price_text as price_text
from .prices import split_label as split_label
from .uncertain import UncertainCounts as UncertainCounts

__all__: list[str]

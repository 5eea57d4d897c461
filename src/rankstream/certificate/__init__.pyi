"""The public names; `lazy_loader` imports each when it is first used."""

from .gap import Certificate as Certificate
from .gap import certify as certify
from .gap import confidence_radii as confidence_radii
from .gap import confident_gap as confident_gap
from .guarantees import data_error_bound as data_error_bound
from .guarantees import data_error_rate as data_error_rate
from .guarantees import guaranteed_gap as guaranteed_gap
from .guarantees import naive_frank_wolfe_bound as naive_frank_wolfe_bound
from .guarantees import rounds_needed as rounds_needed
from .guarantees import smoothing_error as smoothing_error
from .guarantees import translate_to_norm as translate_to_norm
from .proof import Proof as Proof

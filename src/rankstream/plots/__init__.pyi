"""The public names; `lazy_loader` imports each when it is first used."""

from .fits import comparison as comparison
from .fits import convergence as convergence
from .fits import frontier as frontier
from .fits import predicted_against_true as predicted_against_true
from .fits import runners_up as runners_up
from .fits import shares_over_time as shares_over_time
from .fits import value_by_size as value_by_size
from .models import BLUE as BLUE
from .models import GREY as GREY
from .models import ORANGE as ORANGE
from .models import demand as demand
from .models import importance as importance
from .models import predicted_against_observed as predicted_against_observed
from .models import segments as segments
from .models import substitution as substitution

__all__: list[str]

"""The words that most modules share: types, argument checks, deadlines; `lazy_loader` imports each on first use."""

from .arguments import listed as listed
from .arguments import number_between as number_between
from .arguments import optional as optional
from .arguments import whole_number as whole_number
from .arguments import whole_numbers as whole_numbers
from .compilation import UNCOMPILED_STEPS as UNCOMPILED_STEPS
from .compilation import uncompiled as uncompiled
from .types import ROUNDING as ROUNDING
from .types import Bits as Bits
from .types import Bytes as Bytes
from .types import Codes as Codes
from .types import Label as Label
from .types import Mask as Mask
from .types import Vec as Vec
from .watch import Deadline as Deadline
from .watch import Progress as Progress
from .watch import Watch as Watch
from .watch import interrupts as interrupts
from .watch import process_seconds as process_seconds
from .watch import seconds_left as seconds_left
from .watch import thread_seconds as thread_seconds
from .watch import until as until
from .watch import unwatched as unwatched

__all__: list[str]

"""What the service says of itself: a line of JSON for every event, without labels, names, bodies or paths."""

import json
import sys
import time
from typing import Any


def note(event: str, **facts: Any) -> None:
    """Write a line to standard error."""
    line = {"time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}Z", "event": event, **facts}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()

"""The version, for all rooms: who asks the package itself for it imports what stands above."""

VERSION = "0.3.0"

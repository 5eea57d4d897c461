"""The HTTP interface: routes, schemas, events, and the guard in front of them."""

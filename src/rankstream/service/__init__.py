"""The live service: choices come in over HTTP, the model stays current, and shops ask it for predictions and offers."""

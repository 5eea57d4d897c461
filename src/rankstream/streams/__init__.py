"""Models that go on: live, growth, reweighing, change detection, checkpoints."""

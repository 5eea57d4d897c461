"""What every room needs and no user asks for: types, compilation, argument checks, whole files, deadlines."""

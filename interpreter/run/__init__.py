"""Running a model: shapes, the executor, variables, limits. Nothing here knows a particular operator."""

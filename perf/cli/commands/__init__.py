"""The subcommands, a module each, which the parser finds: ``HELP``, ``arguments(parser)`` and ``run(args)``."""

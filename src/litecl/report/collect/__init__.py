"""Measures a model for a report, without drawing."""

from litecl.report.collect.report import Wanted, collect

__all__ = ["Wanted", "collect"]

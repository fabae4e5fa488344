"""Measures a model and gathers what a report tells of it. No drawing."""

from litecl.report.collect.report import Wanted, collect

__all__ = ["Wanted", "collect"]

"""The tables of cases, one module a line."""

from cases import softmax

TABLES = (
    softmax,
)

"""A number for every damaged model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from support.damage import changed_bytes, changed_words
from tools.mutation.fields import changed_fields
from tools.mutation.layout import changed_layout
from tools.mutation.tables import changed_tables

_CUT_EVERYWHERE_BYTES = 4096
_CUT = 8  # models
_CUTS_FROM = 10_000  # mutations
_KINDS = (changed_bytes, changed_words, changed_layout, changed_fields, changed_fields, changed_tables)


@dataclass(frozen=True)
class Plan:
    """What to try: the seed files, the number of mutations of them, and the source of random numbers.

    Long plans begin with small files that are cut off at every byte.
    """

    seeds: Sequence[tuple[str, bytes]]
    mutations: int
    seed: int = 0

    def __len__(self) -> int:
        return len(self._cuts) + self.mutations

    def __getitem__(self, number: int) -> tuple[str, bytes]:
        """Return the name and the content of one damaged model, always the same for the same number."""
        cuts = self._cuts
        if number < len(cuts):
            name, content = self.seeds[cuts[number][0]]
            return f"{name} cut at {cuts[number][1]}", content[: cuts[number][1]]
        rng = np.random.default_rng([self.seed, number])
        name, content = self.seeds[int(rng.integers(len(self.seeds)))]
        return f"{name} mutation {number}", mutate(content, rng)

    @cached_property
    def _cuts(self) -> list[tuple[int, int]]:
        small = [i for i, (_, content) in enumerate(self.seeds) if len(content) <= _CUT_EVERYWHERE_BYTES]
        few = small[:_CUT] if self.mutations > _CUTS_FROM else []
        return [(i, end) for i in few for end in range(len(self.seeds[i][1]))]


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the model with one to four changes of one kind."""
    return _KINDS[int(rng.integers(len(_KINDS)))](content, rng)

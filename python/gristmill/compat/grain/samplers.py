"""Grain's `samplers`."""

from gristmill.compat.grain._samplers import IndexSampler as IndexSampler
from gristmill.compat.grain._samplers import Sampler as Sampler
from gristmill.compat.grain._samplers import SequentialSampler as SequentialSampler

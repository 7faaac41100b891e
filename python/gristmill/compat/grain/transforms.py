"""Grain's `transforms`."""

from gristmill.compat.grain._base import DatasetSelectionMap as DatasetSelectionMap
from gristmill.compat.grain._transforms import Batch as Batch
from gristmill.compat.grain._transforms import Filter as Filter
from gristmill.compat.grain._transforms import FlatMap as FlatMap
from gristmill.compat.grain._transforms import Map as Map
from gristmill.compat.grain._transforms import MapWithIndex as MapWithIndex
from gristmill.compat.grain._transforms import RandomMap as RandomMap
from gristmill.compat.grain._transforms import TfRandomMap as TfRandomMap
from gristmill.compat.grain._transforms import Transformation as Transformation
from gristmill.compat.grain._transforms import Transformations as Transformations

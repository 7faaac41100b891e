"""Grain's `sharding`."""

from gristmill.compat.grain._sharding import NoSharding as NoSharding
from gristmill.compat.grain._sharding import ShardByJaxProcess as ShardByJaxProcess
from gristmill.compat.grain._sharding import ShardOptions as ShardOptions
from gristmill.compat.grain._sharding import even_split as even_split

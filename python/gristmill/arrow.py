"""Converts batches for Arrow libraries through Arrow's C interface, without depending on an Arrow library.

`pyarrow.record_batch(gm.arrow.RecordBatch(batch))` and `polars.DataFrame(gm.arrow.RecordBatchStream(batches))` read
batches. `gm.MapDataset.arrow(table)` reads a table.
"""

from gristmill._gristmill import RecordBatch as RecordBatch
from gristmill._gristmill import RecordBatchStream as RecordBatchStream

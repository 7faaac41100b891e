"""Batches for Arrow's libraries, and their tables as sources, through the C interface: no library of Arrow is needed.

`pyarrow.record_batch(gm.arrow.RecordBatch(batch))`, `polars.DataFrame(gm.arrow.RecordBatchStream(batches))`; the way back is
`gm.MapDataset.arrow(table)`.
"""

from gristmill._gristmill import RecordBatch as RecordBatch
from gristmill._gristmill import RecordBatchStream as RecordBatchStream

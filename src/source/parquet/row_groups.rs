//! Writing of row groups, with several threads that encode columns.
//!
//! Row groups have the sizes and the bytes that `ArrowWriter` of the `parquet` crate produces, with any number of
//! threads.

use std::io::Write;
use std::mem;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use rayon::ThreadPool;
use rayon::prelude::*;

/// A file and its unfinished row group.
pub(super) struct RowGroups<W: Write + Send> {
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    columns: Vec<ArrowColumnWriter>,
    /// Number of rows in the unfinished row group.
    rows: usize,
    most_rows: usize,
    most_bytes: usize,
    /// Threads for encoding. Without a pool, the calling thread encodes.
    pool: Option<Arc<ThreadPool>>,
}

impl<W: Write + Send> RowGroups<W> {
    pub(super) fn new(
        out: W,
        schema: SchemaRef,
        properties: WriterProperties,
        pool: Option<Arc<ThreadPool>>,
    ) -> Result<Self> {
        let most_rows = properties.max_row_group_row_count().unwrap_or(usize::MAX);
        let most_bytes = properties.max_row_group_bytes().unwrap_or(usize::MAX);
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
        let (file, factory) = writer.into_serialized_writer()?;
        Ok(Self { file, factory, schema, columns: Vec::new(), rows: 0, most_rows, most_bytes, pool })
    }

    /// Appends rows. Writes each row group when it is full.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            match self.room().min(batch.num_rows() - from) {
                0 => self.flush()?,
                rows => {
                    self.encode(&batch.slice(from, rows))?;
                    from += rows;
                    if self.rows >= self.most_rows || self.bytes() >= self.most_bytes {
                        self.flush()?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes written, plus an estimate for the unfinished row group.
    pub(super) fn estimated_bytes(&self) -> usize {
        self.file.bytes_written() + self.bytes()
    }

    pub(super) fn into_inner(mut self) -> Result<W> {
        self.flush()?;
        self.file.into_inner()
    }

    /// Estimates how many rows still fit, by the size of the rows in the row group.
    fn room(&self) -> usize {
        let rows = self.most_rows - self.rows;
        if self.rows == 0 {
            return rows;
        }
        let bytes = self.bytes();
        let Some(left) = self.most_bytes.checked_sub(bytes).filter(|&left| left > 0) else { return 0 };
        left.checked_div(bytes / self.rows).map_or(rows, |fit| rows.min(fit))
    }

    /// Estimates the size of the unfinished row group in bytes.
    fn bytes(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        self.rows += batch.num_rows();
        let mut leaves = Vec::with_capacity(self.columns.len());
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        let put = |(column, leaf): (&mut ArrowColumnWriter, ArrowLeafColumn)| column.write(&leaf);
        let mut work = self.columns.iter_mut().zip(leaves);
        if let Some(pool) = &self.pool {
            let work: Vec<_> = work.collect();
            // The error is that of the first failed column in column order, regardless of time.
            pool.install(|| work.into_par_iter().map(put).collect::<Vec<_>>()).into_iter().collect()
        } else {
            work.try_for_each(put)
        }
    }

    /// Writes the unfinished row group, if it has rows.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = mem::take(&mut self.columns);
        let chunks: Vec<Result<_>> = match &self.pool {
            None => columns.into_iter().map(ArrowColumnWriter::close).collect(),
            Some(pool) => pool.install(|| columns.into_par_iter().map(ArrowColumnWriter::close).collect()),
        };
        let mut group = self.file.next_row_group()?;
        for chunk in chunks {
            chunk?.append_to_row_group(&mut group)?;
        }
        group.close().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float32Array, Int64Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use proptest::prelude::*;

    use super::*;

    fn batch(from: usize, rows: usize) -> RecordBatch {
        let rows = from..from + rows;
        let schema = Schema::new(vec![
            Field::new("i", DataType::Int64, true),
            Field::new("x", DataType::Float32, true),
            Field::new("text", DataType::Utf8, true),
        ]);
        let texts: StringArray = rows.clone().map(|i| (i % 5 > 0).then(|| format!("number {}", i * i))).collect();
        let i = Int64Array::from_iter_values(rows.clone().map(|i| i as i64));
        let x = Float32Array::from_iter_values(rows.map(|i| i as f32 / 3.0));
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(i), Arc::new(x), Arc::new(texts)]).unwrap()
    }

    fn properties(rows: usize, bytes: usize) -> WriterProperties {
        let builder = WriterProperties::builder().set_max_row_group_row_count(Some(rows));
        builder.set_max_row_group_bytes(Some(bytes)).build()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
        #[test]
        fn files_are_those_of_the_crate_whoever_encodes(
            sizes in prop::collection::vec(1usize..300, 0..8),
            rows in 1usize..500,
            bytes in 1usize..20_000,
        ) {
            let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
            let schema = batch(0, 1).schema();
            let batches: Vec<_> = sizes.iter().scan(0, |from, &rows| {
                let batch = batch(*from, rows);
                *from += rows;
                Some(batch)
            }).collect();
            let mut twin = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties(rows, bytes))).unwrap();
            batches.iter().for_each(|batch| twin.write(batch).unwrap());
            let expected = twin.into_inner().unwrap();
            for pool in [None, Some(pool)] {
                let mut groups = RowGroups::new(Vec::new(), schema.clone(), properties(rows, bytes), pool).unwrap();
                batches.iter().for_each(|batch| groups.write(batch).unwrap());
                prop_assert!(groups.into_inner().unwrap() == expected);
            }
        }
    }
}

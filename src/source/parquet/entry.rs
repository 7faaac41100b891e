//! The source of pipeline files.

use super::{Condition, Parquet, ParquetOptions};
use crate::declare::arguments::Arguments;
use crate::declare::decode::Fields;
use crate::declare::values::Amount;
use crate::source::entries::prelude::*;
use crate::source::formats::parquet::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(parquet)).chooses("columns")];

arguments! {
    struct ParquetArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.parquet`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Memory for decoded row groups that are kept.
        cache_bytes: Amount = "256MiB",
        /// Leaves out the row groups whose statistics exclude such a row: `{column: id, min: 3, max: 9}`, or `equals` in place of the
        /// limits. All given conditions must hold. A `filter` drops the other rows of the row groups that are read.
        row_groups: Option<Condition>,
        /// The columns to read, all of them by default; `meta.url` is one field of a struct.
        columns: Option<Given<Vec<String>>>,
        /// Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them: by default the folders between a folder
        /// of `paths` and its files, if true all folders of a path, if false none.
        hive_partitioning: Option<bool>,
    }
}

fn parquet(args: ParquetArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = Parquet::options().cache_bytes(args.cache_bytes.into());
    let options = args.row_groups.into_iter().fold(options, ParquetOptions::row_groups_where);
    let options = args.hive_partitioning.into_iter().fold(options, ParquetOptions::hive_partitioning);
    let columns = args.columns.map(|given| Ok::<_, crate::Error>((given.get()?, given))).transpose()?;
    by_number(at, || {
        let Some((names, given)) = columns else { return Ok(Source::new(options.open(&paths)?).boxed()) };
        let opened = options.open_choosing(&paths, |mut columns| {
            // Whether `meta` has a field `url` is known where the file is opened with `meta.url` as a column.
            let is_inner =
                |name: &String| name.split_once('.').is_some_and(|(root, _)| columns.iter().any(|c| c == root));
            let inner: Vec<_> = names.into_iter().filter(is_inner).collect();
            columns.extend(inner);
            at.of_columns(columns).columns_in(&given)
        })?;
        Ok(Source::new(opened).boxed())
    })
}

arguments! {
    struct ConditionArgs {
        /// The column that the conditions are about.
        column: String,
        /// The least number.
        min: Option<f64>,
        /// The greatest number.
        max: Option<f64>,
        /// The text itself.
        equals: Option<String>,
    }
}

impl Decode for Condition {
    const KIND: Kind = Kind::Section(&ConditionArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::new(node)?;
        let ConditionArgs { column, min, max, equals } = ConditionArgs::read(&fields)?;
        if min.is_none() && max.is_none() && equals.is_none() {
            return Err(fields.error("needs a condition: one of min, max, equals"));
        }
        fields.finish()?;
        let condition = min.into_iter().fold(Self::column(column), Self::min);
        let condition = max.into_iter().fold(condition, Self::max);
        Ok(equals.into_iter().fold(condition, Self::equals))
    }
}

//! Parquet.

use super::{paths, unopened_map};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::source::{Condition, Parquet};
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::Fields;

/// `parquet: {paths: "data-*.parquet", columns: [text], row_groups: {column: id, min: 3}, cache_bytes: 268435456}`.
pub(super) fn parquet(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = Parquet::options();
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    if let Some(node) = fields.node("row_groups") {
        options = options.row_groups_where(condition(&Fields::new(node)?)?);
    }
    let names = fields.optional::<Vec<String>>("columns")?;
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    if let Some((node, names)) = fields.node("columns").zip(names) {
        let mut columns: Vec<_> = Parquet::open(&paths)?.columns().map(str::to_owned).collect();
        // Of `meta.url`, whoever opens the file says whether the field is there.
        let fields = |name: &String| name.split_once('.').is_some_and(|(root, _)| columns.iter().any(|c| c == root));
        let inner: Vec<_> = names.into_iter().filter(fields).collect();
        columns.extend(inner);
        let known = Context { columns: Some(columns), ..Context::new(context.folder.clone()) };
        options = options.columns(known.columns_in(node)?);
    }
    Ok(Chain::Map(Source::new(options.open(&paths)?).boxed()))
}

/// `{column: id, min: 3, max: 9}` or `{column: lang, equals: en}`.
fn condition(fields: &Fields<'_>) -> Result<Condition> {
    let mut condition = Condition::column(fields.required::<String>("column")?);
    let (min, max, equals) = (fields.optional("min")?, fields.optional("max")?, fields.optional::<String>("equals")?);
    if min.is_none() && max.is_none() && equals.is_none() {
        return Err(fields.error("needs a condition: one of min, max, equals"));
    }
    condition = min.into_iter().fold(condition, Condition::min);
    condition = max.into_iter().fold(condition, Condition::max);
    condition = equals.into_iter().fold(condition, Condition::equals);
    fields.finish()?;
    Ok(condition)
}

//! Arrow.

use super::{paths, unopened_map};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::source::Arrow;
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::Fields;

/// `arrow: {paths: "data-*.arrow", columns: [text], cache_bytes: 268435456}`.
pub(super) fn arrow(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = Arrow::options();
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    fields.optional::<Vec<String>>("columns")?;
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    if let Some(node) = fields.node("columns") {
        let columns = Arrow::open(&paths)?.columns().map(str::to_owned).collect();
        let known = Context { columns: Some(columns), ..Context::new(context.folder.clone()) };
        options = options.columns(known.columns_in(node)?);
    }
    Ok(Chain::Map(Source::new(options.open(&paths)?).boxed()))
}

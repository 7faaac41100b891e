//! NumPy's arrays.

#[cfg(feature = "compress")]
use super::whole::Whole;
use super::{paths, unopened_map};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
#[cfg(feature = "compress")]
use crate::source::Format;
use crate::source::Npy;
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::Fields;

/// `npy: {paths: "a-*.npy", field: data}`: rows along the first dimension. A single file may be given as `path`.
pub(super) fn npy(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = match fields.node("path") {
        Some(path) if fields.node("paths").is_none() => vec![context.existing(path)?],
        _ => paths(fields.required_node("paths")?, context)?,
    };
    let field = fields.or("field", "data".to_owned())?;
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    Ok(Chain::Map(Source::new(Npy::open(&paths)?.field(field)).boxed()))
}

/// `safetensors: {paths: "features-*.safetensors", rows: true, columns: [x]}`: a record for each file, or for each row of its tensors.
#[cfg(feature = "safetensors")]
pub(super) fn safetensors(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = crate::source::Safetensors::options().rows(fields.or("rows", false)?);
    if let Some(columns) = fields.optional::<Vec<String>>("columns")? {
        options = options.columns(columns);
    }
    options = options.float8_as_u8(fields.or("float8_as_u8", false)?);
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    Ok(Chain::Map(Source::new(options.open(&paths)?).boxed()))
}

/// `npz: {paths: "features-*.npz", rows: false}`: a record for each archive, its arrays the fields; or, for each row of them.
#[cfg(feature = "compress")]
pub(super) fn npz(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{Npz, NpzRows};
    let files = super::found(paths(fields.required_node("paths")?, context)?, Format::Npz.endings(), context)?;
    let (max_bytes, rows) = (fields.optional("max_bytes")?, fields.or("rows", false)?);
    let cache_bytes = if rows { fields.optional("cache_bytes")? } else { None };
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    if rows {
        let mut source = NpzRows::open(&files)?;
        if let Some(bytes) = cache_bytes {
            source = source.cache_bytes(bytes);
        }
        if let Some(bytes) = max_bytes {
            source = source.max_bytes(bytes);
        }
        return Ok(Chain::Map(Source::new(source).boxed()));
    }
    let open = |path| {
        let archive = Npz::open(path)?;
        Ok(match max_bytes {
            Some(bytes) => archive.max_bytes(bytes),
            None => archive,
        })
    };
    let archives = files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let elements = archives.iter().map(Npz::element).collect::<Result<_>>()?;
    let identity = archives.iter().map(|npz| npz.identity()).collect();
    Ok(Chain::Map(Whole { name: "npz", elements, identity }.dataset()))
}

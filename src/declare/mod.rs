//! Descriptions of sources and stages for pipeline files: their arguments, the decoders of arguments, and the builders that take them.
//!
//! A source or stage declares its arguments beside its code, by [`arguments!`](arguments::arguments) and an entry. This room knows
//! no source and no stage; [`spec`](crate::spec) puts pipelines together from all entries.

pub(crate) mod arguments;
pub(crate) mod build;
pub(crate) mod chain;
pub(crate) mod columns;
pub(crate) mod decode;
pub(crate) mod entry;
pub(crate) mod node;
pub(crate) mod suggest;
pub(crate) mod values;
pub(crate) mod yaml;

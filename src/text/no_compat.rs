//! Stand-in for the second engine in builds without it: a type without values.

use std::sync::Arc;

use super::engine::{BuiltIn, Engine, SECOND};
use super::vocab::Vocabulary;
use crate::error::Result;

pub(super) const IS_THERE: bool = false;

#[derive(Debug)]
pub(super) enum CompatEngine {}

impl CompatEngine {
    /// Returns an error: the engine is not in this build.
    pub(super) fn load(_: &[u8], _: Arc<Vocabulary>, _: bool) -> Result<Self, String> {
        Err(format!("{SECOND} is not in this build"))
    }
}

impl Engine for CompatEngine {
    fn encode_into(&self, _: &str, _: &mut Vec<u32>) -> Result<()> {
        match *self {}
    }

    fn decode(&self, _: &[u32]) -> Result<String> {
        match *self {}
    }

    fn vocab_size(&self) -> u32 {
        match *self {}
    }

    fn token_to_id(&self, _: &str) -> Option<u32> {
        match *self {}
    }

    fn name(&self) -> &str {
        match *self {}
    }
}

impl BuiltIn for CompatEngine {
    fn added_id(&self, _: &str) -> Option<u32> {
        match *self {}
    }

    fn slowdown(&self) -> f64 {
        match *self {}
    }
}

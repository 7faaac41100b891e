//! Seeds of stages that draw: their own, or derived from those above.

use std::fmt;

use super::stage::Stage;
use crate::error::{Error, Result};

/// The default seed of a random stage on top of `parents`: Grain's rule.
///
/// The nearest `seed` stages above it are found breadth first, without looking past them; each adds its seed and its
/// depth in nodes, and numpy's `SeedSequence` makes one seed of the list. So inserting a stage changes the default
/// seeds of all stages after it: give a seed of its own to what must stay as it is.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if no `seed` stage is above.
pub fn default_seed(parents: &[&dyn Stage]) -> Result<u32> {
    let mut found = Vec::new();
    let mut level: Vec<&dyn Stage> = parents.to_vec();
    let mut depth = 1;
    while !level.is_empty() {
        let mut next = Vec::new();
        for node in level {
            match node.seed_root() {
                Some(seed) => found.push((seed, depth)),
                None => next.extend(node.parents()),
            }
        }
        level = next;
        depth += 1;
    }
    if found.is_empty() {
        return Err(Error::config("a random stage has no seed").help("give it a seed, or put `.seed(n)` before it"));
    }
    Ok(crate::rng::default_seed(&found))
}

/// A seed that a stage was given, or the default derived from the stages above it; or neither.
#[derive(Clone, Copy, Debug)]
pub struct StageSeed(Option<u32>);

impl StageSeed {
    /// `given`, or the default from `parents`.
    pub fn resolve(given: Option<u32>, parents: &[&dyn Stage]) -> Self {
        Self(given.or_else(|| default_seed(parents).ok()))
    }

    /// The seed.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is none.
    pub fn get(self) -> Result<u32> {
        self.0.ok_or_else(|| default_seed(&[]).expect_err("no parents, no seed"))
    }
}

impl fmt::Display for StageSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seed) => write!(f, "seed={seed}"),
            None => f.write_str("seed=none"),
        }
    }
}

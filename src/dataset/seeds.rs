//! Seeds of random stages: given, or derived from earlier `seed` stages.

use super::stage::Stage;
use crate::error::{Error, Result};

/// Returns the default seed of a random stage that reads `parents`, by Grain's rule.
///
/// The nearest `seed` stages are searched breadth first, and the search ends at each of them. Each contributes its seed
/// and its depth in nodes, and numpy's `SeedSequence` combines the list. Inserting a stage therefore changes the
/// default seeds of all later stages. Give explicit seeds to stages that must not change.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no earlier `seed` stage.
pub fn default_seed(parents: &[&dyn Stage]) -> Result<u32> {
    let mut found = Vec::new();
    let mut level: Vec<&dyn Stage> = parents.to_vec();
    let mut depth = 1;
    while !level.is_empty() {
        let mut next = Vec::new();
        for node in level {
            if let Some(seed) = node.node().seed_root { found.push((seed, depth)) } else { next.extend(node.parents()) }
        }
        level = next;
        depth += 1;
    }
    if found.is_empty() {
        return Err(Error::config("a random stage has no seed").help("give it a seed, or put `.seed(n)` before it"));
    }
    Ok(crate::rng::default_seed(&found))
}

/// The seed given to a stage, else the default derived from earlier stages, else none.
#[derive(Clone, Copy, Debug)]
pub struct StageSeed(Option<u32>);

impl StageSeed {
    /// Returns `given`, or the default derived from `parents`.
    pub fn resolve(given: Option<u32>, parents: &[&dyn Stage]) -> Self {
        Self(given.or_else(|| default_seed(parents).ok()))
    }

    /// Returns the seed.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no seed.
    pub fn get(self) -> Result<u32> {
        self.0.ok_or_else(|| default_seed(&[]).expect_err("no parents, no seed"))
    }
}

display_as!(StageSeed, |self, f| {
    if let Some(seed) = self.0 { write!(f, "seed={seed}") } else { f.write_str("seed=none") }
});

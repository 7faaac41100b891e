//! Random numbers and orders that depend on nothing but a seed and an index.
//!
//! Nothing here has a state that running changes: a permutation is a function of (seed, length, index), the random
//! numbers of an element are a function of (seed, index). So threads, workers and restarts cannot change them.
//! Streams and orders are those of Grain and of the numpy generators that it uses, bit for bit.

mod draws;
mod epoch_shuffle;
#[cfg(test)]
mod golden;
mod index_shuffle;
mod mix;
mod pcg64;
mod philox;
mod proportions;
mod round_keys;
mod seed_sequence;
mod small_block;

pub use epoch_shuffle::EpochShuffle;
pub use index_shuffle::{DEFAULT_ROUNDS, IndexShuffle, permutation};
pub use mix::{MixCursor, MixOrder};
pub use pcg64::{Pcg64, permuted};
pub use philox::{ElementRng, PhiloxKey};
pub use seed_sequence::{SeedSequence, default_seed};

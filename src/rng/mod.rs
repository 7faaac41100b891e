//! Random numbers and orders that depend only on a seed and an index.
//!
//! Nothing depends on mutable state: a permutation is a function of (seed, length, index), and the random numbers of an
//! element are a function of (seed, index). So threads, workers and restarts cannot change them.
//! Streams and orders equal Grain's and the numpy generators' that Grain uses, bit for bit. The order of Megatron's
//! samples is drawn by numpy's older generator, and is computed whole.
//!
//! Generators implement the traits of `rand_core`. The `rand` crate (0.10) is not used: its bounded integers and shuffles
//! differ from NumPy's, and it has neither Philox nor `SeedSequence`.

mod draws;
mod epoch_shuffle;
#[cfg(test)]
mod golden;
mod index_shuffle;
mod mix;
mod mt19937;
mod pcg64;
mod philox;
mod piecewise;
mod proportions;
mod round_keys;
mod schedule;
mod seed_sequence;
mod small_block;
mod token_turns;
mod turns;

pub use epoch_shuffle::EpochShuffle;
pub use index_shuffle::{DEFAULT_ROUNDS, IndexShuffle, permutation};
pub use mix::{MixCursor, MixOrder};
pub(crate) use mt19937::Mt19937;
pub use pcg64::{Pcg64, permuted};
pub use philox::{ElementRng, PhiloxKey};
pub use piecewise::PiecewiseOrder;
pub(crate) use schedule::{MOST_STEPS, Row, shares, without_schedule};
pub use schedule::{Schedule, ScheduleEntry};
pub use seed_sequence::{SeedSequence, default_seed};
pub(crate) use token_turns::{Origin, TokenTurns};
pub(crate) use turns::Turns;

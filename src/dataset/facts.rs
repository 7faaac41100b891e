//! Facts of a stage's function: the part of [`Stage`](super::Stage) that does not concern parents.

use super::memory::Memory;
use super::stage::Role;
use crate::error::Result;

/// Facts of a stage's function, independent of its elements and parent. The resulting [`Stage`](super::Stage) reports
/// these facts.
pub trait Facts: Send + Sync {
    /// Returns the name of the stage: see [`Stage::name`](super::Stage::name).
    fn name(&self) -> &'static str;

    /// Returns the arguments that shape the function: see [`Stage::params`](super::Stage::params).
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the kind of change to the stream: see [`Stage::role`](super::Stage::role).
    fn role(&self) -> Role {
        Role::Elementwise
    }

    /// Returns true if the function is the crate's own code: see [`Stage::is_native`](super::Stage::is_native).
    fn is_native(&self) -> bool {
        false
    }

    /// Returns true for a function of single elements: see [`Stage::is_each`](super::Stage::is_each).
    #[doc(hidden)]
    fn is_each(&self) -> bool {
        false
    }

    /// Returns true if the function makes an element even without an input: see
    /// [`Stage::has_every_index`](super::Stage::has_every_index).
    fn has_every_index(&self) -> bool {
        false
    }

    /// Returns true if the result also depends on the element's index. Results recorded at other indices then do not
    /// apply.
    fn sees_index(&self) -> bool {
        false
    }

    /// Returns the memory that the function may hold: see [`Stage::memory`](super::Stage::memory).
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Checks the arguments: see [`Stage::check`](super::Stage::check).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

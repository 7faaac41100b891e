//! Facts of a stage's function: the part of [`Stage`](super::Stage) that does not concern parents.

use super::memory::Memory;
use super::stage::Role;
use crate::error::Result;

/// Facts of a stage's function, independent of its elements and parent. The resulting [`Stage`](super::Stage) reports
/// these facts.
pub trait Facts: Send + Sync {
    /// Returns the name of the stage: see [`Node::name`](super::Node::name).
    fn name(&self) -> &'static str;

    /// Returns the arguments that shape the function: see [`Describe::params`](super::Describe::params).
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the kind of change to the stream: see [`Node::role`](super::Node::role).
    fn role(&self) -> Role {
        Role::Elementwise
    }

    /// Returns true if the function is the crate's own code: see [`Node::is_native`](super::Node::is_native).
    fn is_native(&self) -> bool {
        false
    }

    /// Returns true for a function of single elements: see [`Work::Chunks`](super::Work::Chunks).
    #[doc(hidden)]
    fn is_each(&self) -> bool {
        false
    }

    /// Returns true if the function makes an element even without an input: see
    /// [`Node::has_every_index`](super::Node::has_every_index).
    fn has_every_index(&self) -> bool {
        false
    }

    /// Returns true if the result also depends on the element's index. Results recorded at other indices then do not
    /// apply.
    fn sees_index(&self) -> bool {
        false
    }

    /// Returns the memory that the function may hold: see [`Node::memory`](super::Node::memory).
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Checks the arguments: see [`Describe::check`](super::Describe::check).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

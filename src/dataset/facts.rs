//! Facts that what a stage does brings along: the part of [`Stage`](super::Stage) that is not about its parents.

use super::memory::Memory;
use super::stage::Role;
use crate::error::Result;

/// Facts about what a stage does, whatever its elements and its parent are: what the [`Stage`](super::Stage) made of it says of itself.
pub trait Facts: Send + Sync {
    /// The name of the stage: see [`Stage::name`](super::Stage::name).
    fn name(&self) -> &'static str;

    /// The arguments that shape what it does: see [`Stage::params`](super::Stage::params).
    fn params(&self) -> String {
        String::new()
    }

    /// The way in which it changes the stream: see [`Stage::role`](super::Stage::role).
    fn role(&self) -> Role {
        Role::Elementwise
    }

    /// Whether it is the crate's own: see [`Stage::is_native`](super::Stage::is_native).
    fn is_native(&self) -> bool {
        false
    }

    /// Whether it is a function of single elements: see [`Stage::is_each`](super::Stage::is_each).
    #[doc(hidden)]
    fn is_each(&self) -> bool {
        false
    }

    /// Whether it makes an element even of none: see [`Stage::has_every_index`](super::Stage::has_every_index).
    fn has_every_index(&self) -> bool {
        false
    }

    /// Whether what it makes of an element depends on the element's index, too. What others were made of elsewhere then says nothing of it.
    fn sees_index(&self) -> bool {
        false
    }

    /// The memory that it may hold: see [`Stage::memory`](super::Stage::memory).
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Whether its arguments make sense: see [`Stage::check`](super::Stage::check).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that gives value and limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

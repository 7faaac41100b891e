//! Errors of another language that are sent to another process.

use std::error::Error as StdError;
use std::sync::OnceLock;

/// Function that serialises a cause, if it is an error of another language.
pub(crate) type Pack = fn(&(dyn StdError + 'static)) -> Option<Vec<u8>>;

static PACK: OnceLock<Pack> = OnceLock::new();

/// Sets the function that serialises causes. Only the first call has an effect.
pub(crate) fn pack_by(pack: Pack) {
    let _ = PACK.set(pack);
}

/// Serialises `cause`, if it is an error of another language.
pub(super) fn pack(cause: &(dyn StdError + 'static)) -> Option<Vec<u8>> {
    PACK.get().and_then(|pack| pack(cause))
}

/// Error of another language, as received from another process.
#[derive(Debug)]
pub(crate) struct Packed {
    message: String,
    bytes: Vec<u8>,
}

impl Packed {
    pub(super) fn new(message: String, bytes: Vec<u8>) -> Self {
        Self { message, bytes }
    }

    /// Returns the serialised exception.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

display_as!(Packed, |self, f| f.write_str(&self.message));

impl StdError for Packed {}

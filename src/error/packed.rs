//! Errors of another language on their way to another process.

use std::error::Error as StdError;
use std::fmt;
use std::sync::OnceLock;

/// Makes bytes of a cause, if it is an error of that language.
pub(crate) type Pack = fn(&(dyn StdError + 'static)) -> Option<Vec<u8>>;

static PACK: OnceLock<Pack> = OnceLock::new();

/// Has causes that `pack` knows cross as the bytes that it makes of them. The first one stands.
#[cfg(feature = "python")]
pub(crate) fn pack_by(pack: Pack) {
    let _ = PACK.set(pack);
}

/// The bytes of `cause`, if anybody knows it.
pub(super) fn pack(cause: &(dyn StdError + 'static)) -> Option<Vec<u8>> {
    PACK.get().and_then(|pack| pack(cause))
}

/// An error of another language, as it came from the process where it arose.
#[derive(Debug)]
pub(crate) struct Packed {
    message: String,
    #[cfg_attr(not(feature = "python"), expect(dead_code, reason = "read by those who can pack"))]
    bytes: Vec<u8>,
}

impl Packed {
    pub(super) fn new(message: String, bytes: Vec<u8>) -> Self {
        Self { message, bytes }
    }

    /// Returns the exception as it was made there.
    #[cfg(feature = "python")]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Packed {}

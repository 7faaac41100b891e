//! Implementations of `Debug` in one expression.

/// Implements `Debug` for a type: `debug_as!(Name, |self, f| f.write_str("Name"))`.
macro_rules! debug_as {
    (<$($generic:ident $(: $bound:path)?),+> $type:ty, |$self:ident, $f:ident| $text:expr) => {
        impl<$($generic $(: $bound)?),+> std::fmt::Debug for $type {
            fn fmt(&$self, $f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $text
            }
        }
    };
    ($type:ty, |$self:ident, $f:ident| $text:expr) => {
        impl std::fmt::Debug for $type {
            fn fmt(&$self, $f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $text
            }
        }
    };
}

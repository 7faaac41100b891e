//! Implementations of `Debug` and `Display` in one expression.

/// Implements `Debug` for a type: `debug_as!(Name, |self, f| f.write_str("Name"))`.
macro_rules! debug_as {
    (<$($generic:ident $(: $bound:path)?),+> $($rest:tt)+) => {
        text_as!(Debug, [<$($generic $(: $bound)?),+>] $($rest)+);
    };
    ($($rest:tt)+) => {
        text_as!(Debug, [] $($rest)+);
    };
}

/// Implements `Display` for a type: `display_as!(Name, |self, f| f.write_str("name"))`.
macro_rules! display_as {
    ($($rest:tt)+) => {
        text_as!(Display, [] $($rest)+);
    };
}

macro_rules! text_as {
    ($trait:ident, [$($generics:tt)*] $type:ty, |$self:ident, $f:ident| $text:expr) => {
        impl $($generics)* std::fmt::$trait for $type {
            fn fmt(&$self, $f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $text
            }
        }
    };
}

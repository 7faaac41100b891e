//! Implementations of `Debug` for adaptors and their passes, whose closures and parent passes do not implement it.

/// Implements `Debug` for an adaptor: prints its name and its parent.
macro_rules! debug_with_parent {
    ($name:ident < D $(, $param:ident)* >) => {
        impl<D: std::fmt::Debug $(, $param)*> std::fmt::Debug for $name<D $(, $param)*> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).field("parent", &self.parent).finish_non_exhaustive()
            }
        }
    };
}

/// Implements `Debug` for other types: prints the name.
macro_rules! debug_name {
    ($name:ident < $($param:ident $(: $bound:path)?),* >) => {
        impl<$($param $(: $bound)?),*> std::fmt::Debug for $name<$($param),*> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(in crate::dataset) use {debug_name, debug_with_parent};

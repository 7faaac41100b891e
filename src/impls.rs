//! Implementations of traits and methods in one expression.

/// Implements `Default` for a type: `default_as!(Name, Self::NONE)`.
macro_rules! default_as {
    (<$generic:ident> $type:ty, $value:expr) => {
        default_as!([<$generic>] $type, $value);
    };
    ([$($generics:tt)*] $type:ty, $value:expr) => {
        impl $($generics)* Default for $type {
            fn default() -> Self {
                $value
            }
        }
    };
    ($($rest:tt)+) => {
        default_as!([] $($rest)+);
    };
}

/// Implements `Clone` for a type: `clone_as!(<T> Name<T>, |self| *self)`.
macro_rules! clone_as {
    (<$($generic:ident),+> $type:ty, |$self:ident| $value:expr) => {
        impl<$($generic),+> Clone for $type {
            fn clone(&$self) -> Self {
                $value
            }
        }
    };
}

/// Implements `From` for a type: `from_as!(Array => Value, |array| Self::Array(array))`.
macro_rules! from_as {
    ($from:ty => $type:ty, |$given:pat_param| $value:expr) => {
        impl From<$from> for $type {
            fn from($given: $from) -> Self {
                $value
            }
        }
    };
}

/// Defines methods that return a constant, inside an `impl`: `facts! { name: "zip", role: Role::Stateful }`. The types
/// of the constants are imported where the macro is used.
macro_rules! facts {
    ($($fact:ident: $value:expr),+ $(,)?) => {
        $(facts!(@ $fact, $value);)+
    };
    (@ name, $value:expr) => {
        facts!(@@ name, &'static str, $value);
    };
    (@ unplanned, $value:expr) => {
        facts!(@@ unplanned, &'static str, $value);
    };
    (@ role, $value:expr) => {
        facts!(@@ role, Role, $value);
    };
    (@ memory, $value:expr) => {
        facts!(@@ memory, Option<Memory>, $value);
    };
    (@ parents, $value:expr) => {
        facts!(@@ parents, Vec<&dyn Stage>, $value);
    };
    (@ $fact:ident, $value:expr) => {
        facts!(@@ $fact, bool, $value);
    };
    (@@ $fact:ident, $type:ty, $value:expr) => {
        fn $fact(&self) -> $type {
            $value
        }
    };
}

/// Defines `bulk`, inside an `impl MapDataset`, of a dataset that is a `BulkRead`.
macro_rules! reads_in_bulk {
    () => {
        fn bulk(&self) -> Option<&dyn BulkRead<Self::Item>> {
            Some(self)
        }
    };
}

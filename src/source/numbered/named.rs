//! Public sources that delegate to an inner source.

/// Implements the methods of [`RandomAccess`](crate::dataset::map::RandomAccess) that do not depend on the record type,
/// by delegation to the field `inner`.
macro_rules! same_source {
    ($inner:tt) => {
        fn len(&self) -> u64 {
            self.$inner.len()
        }
        fn stored_bytes(&self, index: u64) -> Option<u64> {
            self.$inner.stored_bytes(index)
        }
        fn stored_range(&self, index: u64) -> Option<std::ops::Range<u64>> {
            self.$inner.stored_range(index)
        }
        fn place_in_words(&self, index: u64) -> Option<String> {
            self.$inner.place_in_words(index)
        }
        fn place(&self, index: u64) -> Option<(std::path::PathBuf, u64)> {
            self.$inner.place(index)
        }
        fn looks_ahead(&self) -> Option<u64> {
            self.$inner.looks_ahead()
        }
        fn will_read(&self, next: $crate::dataset::Upcoming<'_>) {
            self.$inner.will_read(next);
        }
        fn bring(&self, indices: &[u64]) {
            self.$inner.bring(indices);
        }
        #[inline]
        fn take_decoded(&self) -> Option<$crate::dataset::map::Decoded> {
            self.$inner.take_decoded()
        }
        #[inline]
        fn take_note(&self) -> Option<(&'static str, u64)> {
            self.$inner.take_note()
        }
        fn blocks(&self) -> Option<$crate::dataset::Blocks> {
            self.$inner.blocks()
        }
        fn files(&self) -> Vec<String> {
            $crate::dataset::map::RandomAccess::files(&self.$inner)
        }
        fn if_shuffled(&self) -> Option<$crate::dataset::map::Shuffled> {
            self.$inner.if_shuffled()
        }
    };
}
pub(in super::super) use same_source;

/// Implements `RandomAccess` for a struct whose only field is [`Files`](super::Files) or similar. `more` adds methods.
macro_rules! named_source {
    ($source:ident of $record:ty $({ $($more:tt)* })?) => {
        impl $crate::dataset::map::RandomAccess for $source {
            type Record = $record;

            $crate::source::numbered::same_source!(0);

            #[inline]
            fn read(&self, index: u64) -> $crate::Result<$record> {
                self.0.read(index)
            }
            #[inline]
            fn read_many(&self, indices: &[u64]) -> $crate::dataset::map::Many<$record> {
                self.0.read_many(indices)
            }
            fn facts(&self) -> $crate::dataset::map::SourceFacts {
                self.0.facts()
            }
            #[inline]
            fn record_bytes(&self, record: &$record) -> u64 {
                self.0.record_bytes(record)
            }
            $($($more)*)?
        }

        debug_as!($source, |self, f| write!(f, concat!(stringify!($source), "({:?})"), self.0));
    };
}
pub(in super::super) use named_source;

/// Implements `options` and `open` for a source, and `access` for its options. The field `at` holds the
/// [`Access`](crate::source::Access).
macro_rules! source_options {
    ($options:ident of $source:ident, access at $($access:tt).+) => {
        impl $source {
            /// Returns the default options.
            pub fn options() -> $options {
                $options::default()
            }

            /// Opens files with the default options.
            ///
            /// # Errors
            #[doc = concat!("As for [`open`](", stringify!($options), "::open) of the options.")]
            pub fn open(patterns: impl $crate::source::Patterns) -> $crate::Result<Self> {
                Self::options().open(patterns)
            }
        }

        impl $options {
            /// Sets how files are read.
            pub fn access(mut self, access: $crate::source::Access) -> Self {
                self.$($access).+ = access;
                self
            }
        }
    };
}
pub(in super::super) use source_options;

/// Implements methods of [`Numbered`](super::Numbered) for a format whose index holds the start of each record. `range`
/// is a method of the files.
macro_rules! by_starts {
    ($index:ty, $range:ident) => {
        fn len(&self, file: &$crate::source::numbered::File<$index>) -> u64 {
            file.index.len()
        }
        fn ranges(
            &self,
            file: &$crate::source::numbered::File<$index>,
            record: u64,
        ) -> impl IntoIterator<Item = std::ops::Range<u64>> {
            file.$range(record)
        }
        fn stored_bytes(&self, file: &$crate::source::numbered::File<$index>, record: u64) -> Option<u64> {
            file.$range(record).map(|range| range.end - range.start)
        }
        fn index_bytes(index: &$index) -> Option<u64> {
            Some(index.memory_bytes())
        }
    };
}
pub(in super::super) use by_starts;

/// Defines the function of the crate root that opens a format as a dataset, by its name in pipeline files.
macro_rules! reader {
    (@open $source:ident($patterns:ident)) => {
        $source::open($patterns)
    };
    (@open $source:ident($patterns:ident, $columns:ident)) => {
        $crate::source::ColumnNames::names($columns)
            .into_iter()
            .fold($source::options(), |options, names| options.columns(names))
            .open($patterns)
    };
    ($(#[$about:meta])* $name:ident: $source:ident $(by $columns:ident)?) => {
        $(#[$about])*
        ///
        /// # Errors
        #[doc = concat!("As for [`open`](crate::source::", stringify!($source), "::open).")]
        pub fn $name(
            patterns: impl $crate::source::Patterns,
            $($columns: impl $crate::source::ColumnNames,)?
        ) -> $crate::Result<$crate::dataset::map::Source<$source>> {
            reader!(@open $source(patterns $(, $columns)?)).map($crate::dataset::map::Source::new)
        }
    };
}
pub(in super::super) use reader;

//! Descriptions of arguments, each beside the function that takes it. Decoders, the JSON Schema, `gristmill stages` and the tables of the
//! documentation read them.

use super::decode::Fields;
use crate::error::Result;

/// The arguments of a source, a stage or a section of a pipeline file.
pub(crate) trait Arguments: Sized {
    /// The description of all of them.
    const ABOUT: About;

    /// Reads them.
    fn read(fields: &Fields<'_>) -> Result<Self>;
}

/// Reads a section that has these arguments and no others.
pub(crate) fn read<A: Arguments>(node: &super::node::Node) -> Result<A> {
    let fields = Fields::of(node, &A::ABOUT)?;
    let args = A::read(&fields)?;
    fields.finish()?;
    Ok(args)
}

/// Description of a mapping of arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) args: &'static [Arg],
    /// Arguments that it shares with others.
    pub(crate) shared: &'static [&'static Self],
    /// Arguments that the entry of the source or stage reads.
    pub(crate) outer: Option<&'static Self>,
    /// The argument that takes a bare value, as in `limit: 100`.
    pub(crate) main: Option<&'static str>,
    /// The kind of values whose keys are names that the user chooses, in place of arguments.
    pub(crate) free: Option<Kind>,
}

/// Description of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) is_optional: bool,
    /// The default value, in the syntax of a file.
    pub(crate) default: Option<&'static str>,
    doc: &'static str,
    /// Tries to read a value, as its decoder does.
    #[cfg(test)]
    pub(crate) check: fn(&super::node::Node) -> Result<()>,
}

/// Kinds of values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Any,
    Bool,
    Integer {
        min: i64,
        max: u64,
    },
    Number,
    Seconds,
    Text,
    /// One byte of text, or none.
    #[cfg_attr(not(feature = "formats"), allow(dead_code, reason = "few formats have some"))]
    Byte,
    /// One of a few words.
    Words(&'static [&'static str]),
    /// An amount of memory: a number of bytes, or text such as `512MiB`.
    Memory,
    /// A part of rows: `3/64`.
    Share,
    /// A file, folder, glob or URL.
    Path,
    /// Path of a tokenizer's file, or its contents.
    Tokenizer,
    /// A list, or one item that is no mapping.
    List(&'static Self),
    /// A mapping whose keys are names that the user chooses.
    Map(&'static Self),
    /// A mapping of arguments.
    Section(&'static About),
    Either(&'static [Self]),
    Source,
    Stages,
    /// A separate source, or `source` and `stages`.
    Part,
}

impl About {
    /// No arguments.
    pub(crate) const NONE: Self = Self { args: &[], shared: &[], outer: None, main: None, free: None };

    /// Returns the argument that takes a bare value.
    pub(crate) fn main_arg(&self) -> Option<&'static Arg> {
        self.all().into_iter().find(|arg| Some(arg.name) == self.main)
    }

    /// Returns all arguments, required arguments first.
    pub(crate) fn all(&self) -> Vec<&'static Arg> {
        let shared = self.shared.iter().flat_map(|about| about.args);
        let outer = self.outer.iter().flat_map(|about| about.args);
        let mut all: Vec<_> = shared.chain(self.args).chain(outer).collect();
        all.sort_by_key(|arg| !arg.is_required());
        all
    }
}

impl Arg {
    pub(crate) const fn new<T: super::values::Decode>(
        name: &'static str,
        default: Option<&'static str>,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            kind: T::KIND,
            is_optional: T::IS_OPTIONAL,
            default,
            doc,
            #[cfg(test)]
            check: T::check,
        }
    }

    /// Whether it must be given.
    pub(crate) const fn is_required(&self) -> bool {
        !self.is_optional && self.default.is_none()
    }

    /// Returns its description: a sentence or more.
    pub(crate) fn doc(&self) -> String {
        line(self.doc)
    }

    /// Returns the paragraphs of its description, the first of which stands alone in a list of options.
    #[cfg(feature = "cli")]
    pub(crate) fn paragraphs(&self) -> impl Iterator<Item = String> {
        self.doc.split("\n\n").map(line)
    }
}

/// The words of a text in one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(any(feature = "cli", test))]
impl Kind {
    /// The mappings of arguments in it.
    pub(crate) fn sections(&self) -> Vec<&'static About> {
        match self {
            Self::Section(about) => vec![about],
            Self::List(item) | Self::Map(item) => item.sections(),
            Self::Either(kinds) => kinds.iter().flat_map(Self::sections).collect(),
            _ => Vec::new(),
        }
    }
}

/// A struct of arguments, which its fields describe: the name in the file, the type, the default in the words of a file, and the
/// documentation. `struct LimitArgs(count)` says which argument a bare value stands for, `with RowArgs as rows` which others are shared, and the field
/// that holds them.
macro_rules! arguments {
    ($(#[$meta:meta])* $vis:vis struct $name:ident $(($main:ident))? $(with $($shared:ident $(as $field:ident)?),+)? {
        $($(#[doc = $doc:literal])+ $field_vis:vis $arg:ident: $type:ty $(= $default:literal)?),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($($($field: $shared,)?)+)?
            $($field_vis $arg: $type),*
        }

        impl $crate::declare::arguments::Arguments for $name {
            const ABOUT: $crate::declare::arguments::About = $crate::declare::arguments::About {
                args: &[$($crate::declare::arguments::Arg::new::<$type>(
                    stringify!($arg),
                    $crate::declare::arguments::first!($(stringify!($default))?),
                    concat!($($doc, "\n"),+),
                )),*],
                shared: &[$($(&<$shared as $crate::declare::arguments::Arguments>::ABOUT),+)?],
                outer: None,
                main: $crate::declare::arguments::first!($(stringify!($main))?),
                free: None,
            };

            #[allow(unused_variables, reason = "some stages have no arguments")]
            fn read(fields: &$crate::declare::decode::Fields<'_>) -> $crate::error::Result<Self> {
                Ok(Self {
                    $($($($field: <$shared as $crate::declare::arguments::Arguments>::read(fields)?,)?)+)?
                    $($arg: fields.get(stringify!($arg), $crate::declare::arguments::first!($(stringify!($default))?))?),*
                })
            }
        }
    };
}

/// A value that may be there, as an `Option`.
macro_rules! first {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// A type of which a file names the values by words.
macro_rules! words {
    ($type:ty { $($word:literal => $value:expr),+ $(,)? }) => {
        impl $crate::declare::values::Decode for $type {
            const KIND: $crate::declare::arguments::Kind = $crate::declare::arguments::Kind::Words(&[$($word),+]);

            fn decode(node: &$crate::declare::node::Node) -> $crate::error::Result<Self> {
                let values = [$($value),+];
                let at = $crate::declare::values::word(node, &[$($word),+])?;
                Ok(values[at])
            }
        }
    };
}

pub(crate) use {arguments, first, words};

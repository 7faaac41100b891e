use crate::declare::arguments::words;

/// Policy for elements that do not fill a batch.
///
/// To fill such a batch with padding, use [`batch_padded`], [`batch_masked`] or [`LengthBucketOptions::pad_remainder`].
/// They are separate methods because padding changes the content of a batch.
///
/// [`batch_padded`]: crate::IterDatasetExt::batch_padded
/// [`batch_masked`]: crate::IterDatasetExt::batch_masked
/// [`LengthBucketOptions::pad_remainder`]: crate::pack::LengthBucketOptions::pad_remainder
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Remainder {
    /// Yields them as a smaller batch, as in Grain.
    #[default]
    Keep,
    /// Drops them.
    Drop,
}

impl Remainder {
    /// Returns the name in parameters and pipeline files: `keep` or `drop`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
        }
    }
}

words!(Remainder { "keep" => Remainder::Keep, "drop" => Remainder::Drop });

/// Policy for the last elements, which may also be padded.
#[derive(Clone, Copy)]
pub(crate) enum RemainderOrPad {
    Left(Remainder),
    Padded,
}

words!(RemainderOrPad {
    "keep" => RemainderOrPad::Left(Remainder::Keep),
    "drop" => RemainderOrPad::Left(Remainder::Drop),
    "pad" => RemainderOrPad::Padded,
});

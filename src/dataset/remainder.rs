/// Policy for elements that do not fill a batch.
///
/// Filling them up is a method of its own, because it changes what a batch is: [`batch_padded`], [`batch_masked`] and
/// [`LengthBucketOptions::pad_remainder`].
///
/// [`batch_padded`]: crate::IterDataset::batch_padded
/// [`batch_masked`]: crate::IterDataset::batch_masked
/// [`LengthBucketOptions::pad_remainder`]: crate::pack::LengthBucketOptions::pad_remainder
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Remainder {
    /// They are a smaller batch, as in Grain.
    #[default]
    Keep,
    /// They are dropped.
    Drop,
}

impl Remainder {
    /// The name in parameters and pipeline files: `keep` or `drop`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
        }
    }
}

/// What a mix does if one of its datasets ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtEnd {
    /// Ends the mix.
    #[default]
    Stop,
    /// Reads the dataset again from its first element.
    Repeat,
    /// Divides the weight of the dataset among the others, in proportion to their weights. The mix ends if all datasets
    /// with a weight have ended.
    Redistribute,
}

display_as!(AtEnd, |self, f| {
    f.write_str(match self {
        Self::Stop => "stop",
        Self::Repeat => "repeat",
        Self::Redistribute => "redistribute",
    })
});

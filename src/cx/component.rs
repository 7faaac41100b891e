//! Counts of the components of a mix.

/// Elements that a mix has taken from one of its components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComponentCounts {
    /// Elements taken in this run.
    pub(crate) elements: u64,
    /// Tokens of these elements, if the mix counts tokens.
    pub(crate) tokens: u64,
    /// Number of times that the mix has started the component again, including earlier runs.
    pub(crate) restarts: u64,
    /// True if the mix takes no more elements, because the component or its budget has ended.
    pub(crate) has_ended: bool,
}

impl ComponentCounts {
    /// Adds the counts to `total` and resets the amounts.
    pub(super) fn hand_over(&mut self, total: &mut Self) {
        total.elements += std::mem::take(&mut self.elements);
        total.tokens += std::mem::take(&mut self.tokens);
        (total.restarts, total.has_ended) = (self.restarts, self.has_ended);
    }
}

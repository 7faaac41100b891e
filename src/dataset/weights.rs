use crate::rng::Schedule;

/// Weights of the datasets of a mix.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// Rounded as in Grain.
    LikeGrain(Vec<f64>),
    Exact(Vec<f64>),
    Scheduled(Schedule),
}

use crate::rng::Schedule;

/// Weights of the datasets of a mix.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// Rounded as in Grain.
    LikeGrain(Vec<f64>),
    Exact(Vec<f64>),
    Scheduled(Schedule),
}

/// Returns the names of the datasets of a mix: `given`, or numbers from 0 in place of missing names.
pub(crate) fn component_names(given: &[String], count: usize) -> Vec<String> {
    (0..count).map(|number| given.get(number).cloned().unwrap_or_else(|| number.to_string())).collect()
}

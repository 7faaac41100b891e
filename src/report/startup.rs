//! Start-up: the causes of the wait for the first element.

use std::time::Duration;

use super::format::time;
use super::{First, StageReport, WorkersReport};

/// Smallest share of the wait for the first element that is reported as a cause.
const PART: f64 = 0.05;
/// Share of the wait from which a stage's own work is a cause, if no named cause took as much.
const MOST: f64 = 0.5;

/// Returns descriptions of the causes of the `wait` for the first element.
pub(super) fn causes(
    wait: Duration,
    workers: Option<&WorkersReport>,
    first: &First,
    stages: &[StageReport],
) -> Vec<String> {
    let wait = wait.as_secs_f64();
    let said = |seconds: f64, what: &str| format!("{} of it: {what}", time(seconds * 1e6));
    let mut causes: Vec<String> = workers.and_then(super::workers::startup).into_iter().collect();
    let made = first.made.iter().map(|(what, took)| (took.as_secs_f64().min(wait), *what));
    let mut made: Vec<_> = made.filter(|(took, _)| *took > PART * wait).collect();
    made.sort_by(|a, b| b.0.total_cmp(&a.0));
    let is_known = !causes.is_empty() || made.iter().any(|(took, _)| *took >= MOST * wait);
    causes.extend(made.into_iter().map(|(took, what)| said(took, what)));
    let worked = first.work.iter().zip(stages).map(|(work, stage)| (work.as_secs_f64(), stage));
    let most = worked.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(work, _)| !is_known && *work >= MOST * wait);
    // The work of all threads together may be longer than the wait.
    causes.extend(most.map(|(work, stage)| {
        said(work.min(wait), &format!("the first elements in {} (stage {})", stage.name, stage.id))
    }));
    causes
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::dataset::map::Range;
    use crate::startup::making;
    use crate::{Executor, Load, MapDatasetExt};

    /// Time of a slow step, far longer than anything else that a busy machine does before the first element.
    const LONG: Duration = Duration::from_millis(500);

    /// Returns the start-up causes of a run whose first element calls `first`.
    fn causes(executor: Executor, first: fn()) -> Vec<String> {
        let slow = move |x: i64| {
            if x == 0 {
                first();
            }
            x
        };
        let mut loader = Range::new(0, 100).map(slow).to_iter().batch(4).loader().executor(executor).build().unwrap();
        loader.next().unwrap().unwrap();
        loader.report().waits.startup
    }

    /// A single test, because all loaders of a process see the objects that are made.
    #[test]
    fn an_object_made_at_the_first_element_is_named_or_else_the_stage_that_worked() {
        // Each sleep is the time that an object takes to be made.
        making("something old", || std::thread::sleep(LONG));
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let causes = causes(executor, || making("something new", || std::thread::sleep(LONG)));
            assert!(causes.iter().any(|cause| cause.ends_with(" of it: something new")), "{causes:?}");
            assert!(!causes.iter().any(|cause| cause.contains("old") || cause.contains("map")), "{causes:?}");
        }
        let causes = causes(Executor::Inline, || std::thread::sleep(LONG));
        assert!(
            causes.iter().any(|cause| cause.ends_with(" of it: the first elements in map (stage 1)")),
            "{causes:?}"
        );
        assert_eq!(super::causes(Duration::ZERO, None, &First::default(), &[]), Vec::<String>::new());
    }

    #[test]
    fn what_is_short_or_longer_than_the_wait_is_no_cause() {
        let from = Instant::now();
        let first = First { made: vec![("much", 2 * LONG), ("little", LONG / 100)], ..First::default() };
        assert_eq!(super::causes(LONG, None, &first, &[]), ["500.00 ms of it: much"]);
        assert!(crate::startup::made_between(from, from).is_empty());
    }
}

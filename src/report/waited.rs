//! Division of the consumer's waits: all waits in a report are sums of a single set of parts.

use super::meter::ConsumerMeter;
use super::{StageReport, Why};
use crate::cx::{Cause, Shares};

/// Returns the waits of a loop `around` the loader beyond the loader's waits: a loop in Python, or a loop that sends batches to devices.
pub(crate) fn beside(meter: &ConsumerMeter, around: Option<&ConsumerMeter>) -> Shares {
    let Some(around) = around else { return Shares::default() };
    let all = around.waited.saturating_sub(meter.waited);
    let mut shares = around.beside.within(all);
    let rest = all - shares.total();
    let start = around.first_beyond(meter).min(rest);
    shares.count(Cause::Start, start);
    shares.count(Cause::HandOver, rest - start);
    shares
}

/// Shares of the wall time spent on waits that belong to no stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rest {
    /// Waits for the first element.
    pub(super) startup: f64,
    /// Waits for elements that were ready.
    pub(super) handover: f64,
    /// All other waits that belong to no known stage.
    pub(super) aside: f64,
}

/// Sets the `wait_share` of every stage to the sum of its parts in `why`. Returns the waits that belong to no stage.
pub(super) fn share_out(why: &[Why], stages: &mut [StageReport]) -> Rest {
    let mut rest = Rest::default();
    stages.iter_mut().for_each(|stage| stage.wait_share = 0.0);
    for part in why {
        let stage = part.stage.and_then(|id| stages.get_mut(id));
        let share = match (stage, part.cause) {
            (Some(stage), _) => &mut stage.wait_share,
            (None, Cause::Start) => &mut rest.startup,
            (None, Cause::HandOver) => &mut rest.handover,
            (None, _) => &mut rest.aside,
        };
        *share += part.share;
    }
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::advised::stage;
    use super::super::{Report, scenes, why};
    use super::*;
    use crate::cx::Account;
    use crate::dataset::Role;
    use crate::report::Place;

    /// Returns stages from `work`: whether each runs before the border, its seconds of work, and the share spent waiting for the lock.
    fn stages(work: &[(bool, f64, f64)]) -> Vec<StageReport> {
        let of = |(id, &(ahead, self_s, lock)): (usize, &(bool, f64, f64))| {
            let place = if ahead { Place::Threads } else { Place::Suffix };
            let mut stage = stage(id, "map", Role::Elementwise, place, self_s);
            (stage.work.lock_s, stage.work.cpu_s) = (lock * self_s, (1.0 - lock) * self_s);
            (stage.interpreted, stage.traits.reads_far) = (id % 2 == 0, id == 0);
            stage
        };
        work.iter().enumerate().map(of).collect()
    }

    /// Returns the meter of a loop whose first call took `first` ms and whose calls took `waited` ms in total.
    fn meter(first: u64, waited: u64) -> ConsumerMeter {
        let [first_wait, waited] = [first, waited].map(std::time::Duration::from_millis);
        let mut meter = ConsumerMeter::default();
        (meter.first_wait, meter.waited) = (first_wait, waited);
        meter
    }

    #[test]
    fn a_loop_around_the_loader_waits_for_its_start_its_causes_and_the_handover() {
        let ms = std::time::Duration::from_millis;
        let parts = |loader: &ConsumerMeter, around: &ConsumerMeter| {
            let shares = beside(loader, Some(around));
            let of =
                |wanted: Cause| shares.iter().find(|(cause, _)| *cause == wanted).map_or(0, |part| part.1.as_millis());
            [Cause::Start, Cause::HandOver, Cause::Lock].map(of)
        };
        assert_eq!(beside(&meter(5, 9), None), Shares::default());
        assert_eq!(parts(&meter(10, 100), &meter(40, 160)), [30, 30, 0]);
        assert_eq!(parts(&meter(10, 100), &meter(90, 160)), [60, 0, 0], "no more than all of it");
        assert_eq!(parts(&meter(10, 100), &meter(10, 90)), [0, 0, 0]);
        let mut locked = meter(40, 160);
        locked.beside.count(Cause::Lock, ms(20));
        assert_eq!(parts(&meter(10, 100), &locked), [30, 10, 20]);
    }

    #[test]
    fn shares_are_given_anew_each_time() {
        let mut stages = stages(&[(true, 1.0, 0.0), (false, 2.0, 0.0)]);
        let mut account = Account::default();
        Cause::ALL.into_iter().for_each(|cause| account.shares.count(cause, std::time::Duration::from_secs(1)));
        let why = why::parts(&account, Shares::default(), why::Locks::Here, &stages, 20.0);
        share_out(&why, &mut stages);
        let once: Vec<f64> = stages.iter().map(|stage| stage.wait_share).collect();
        share_out(&why, &mut stages);
        let twice: Vec<f64> = stages.iter().map(|stage| stage.wait_share).collect();
        assert!(once.iter().sum::<f64>() > 0.0);
        assert_eq!(once, twice);
    }

    proptest! {
        #[test]
        fn shares_of_stages_are_their_parts_and_all_add_up(
            waits in prop::collection::vec(0u64..1_000_000_000, Cause::ALL.len()),
            around in prop::collection::vec(0u64..1_000_000_000, 3),
            work in prop::collection::vec((any::<bool>(), 0.0f64..9.0, 0.0f64..1.0), 1..6),
            held_up in (0u32..6, 0u64..1_000_000_000),
            is_elsewhere in any::<bool>(),
        ) {
            let time = std::time::Duration::from_nanos;
            let mut account = Account::default();
            Cause::ALL.into_iter().zip(&waits).for_each(|(cause, ns)| account.shares.count(cause, time(*ns)));
            account.held_up.insert(held_up.0, held_up.1.min(waits[Cause::HeadOfLine as usize]));
            let mut beside = Shares::default();
            let causes = [Cause::Lock, Cause::HandOver, Cause::Transfer];
            causes.into_iter().zip(&around).for_each(|(cause, ns)| beside.count(cause, time(*ns)));
            let mut stages = stages(&work);
            let locks = if is_elsewhere { why::Locks::Elsewhere } else { why::Locks::Here };
            let why = why::parts(&account, beside, locks, &stages, 20.0);
            let rest = share_out(&why, &mut stages);
            let all = (account.shares.total() + beside.total()).as_secs_f64() / 20.0;
            let told: f64 = why.iter().map(|part| part.share).sum();
            prop_assert!((told - all).abs() < 1e-9, "{told} of {all}");
            let of_stages: f64 = stages.iter().map(|stage| stage.wait_share).sum();
            prop_assert!((of_stages + rest.startup + rest.handover + rest.aside - all).abs() < 1e-9, "{rest:?}");
            for stage in &stages {
                let own: f64 = why.iter().filter(|part| part.stage == Some(stage.id)).map(|part| part.share).sum();
                prop_assert!((own - stage.wait_share).abs() < 1e-12, "{stage:?}");
            }
            // The verdict gives the largest sum of the account.
            let largest = stages.iter().map(|stage| stage.wait_share).fold(rest.startup, f64::max);
            let largest = why.iter().filter(|part| part.stage.is_none()).map(|part| part.share).fold(largest, f64::max);
            let mut run = Report { wall_s: 20.0, delivered: 1000, stages: stages.clone(), ..scenes::nothing() };
            run.waits.why.clone_from(&why);
            let verdict = super::super::verdict::judge(&run);
            match verdict.stage {
                Some(id) => prop_assert_eq!(stages[id].wait_share, largest, "{:?}", verdict),
                None if verdict.bottleneck == "consumer" => prop_assert!(told < 0.03, "{verdict:?}"),
                None => {
                    let of_stages = stages.iter().map(|stage| stage.wait_share).fold(0.0, f64::max);
                    prop_assert!(of_stages <= largest && (of_stages < largest || largest == 0.0), "{verdict:?}");
                }
            }
            let share = super::super::format::percent(largest);
            prop_assert!(["consumer", "start-up"].contains(&&*verdict.bottleneck) || verdict.text.contains(&share), "{verdict:?}");
            let mut named: Vec<_> = why.iter().map(|part| (part.cause as usize, part.stage)).collect();
            named.sort_unstable();
            prop_assert!(named.windows(2).all(|two| two[0] != two[1]), "one part of each: {why:?}");
        }
    }
}

//! Divisions of what a consumer waited, where another loop is around the loader: that of Python, or one that sends batches to devices.

use super::meter::ConsumerMeter;
use crate::cx::{Cause, Shares};

/// Parts of what the consumer waited behind its first element, in seconds. They add up to it.
#[derive(Debug, PartialEq)]
pub(super) struct Steady {
    pub(super) elements_s: f64,
    pub(super) transfers_s: f64,
    pub(super) rest_s: f64,
}

impl Steady {
    /// Divides `waited_s`. The first call of a loop around the loader may have made and sent several batches: what those took beyond
    /// the rest is in its time already.
    pub(super) fn of(waited_s: f64, elements_s: f64, transfers_s: f64) -> Self {
        let elements_s = elements_s.min(waited_s);
        let transfers_s = transfers_s.min(waited_s - elements_s);
        Self { elements_s, transfers_s, rest_s: waited_s - elements_s - transfers_s }
    }
}

/// What a loop `around` the loader waited in its calls beside what the loader made it wait.
pub(super) fn beside(meter: &ConsumerMeter, around: Option<&ConsumerMeter>) -> Shares {
    let Some(around) = around else { return Shares::default() };
    let all = around.waited.saturating_sub(meter.waited);
    let mut shares = around.beside.within(all);
    shares.count(Cause::HandOver, all - shares.total());
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_whatever_the_first_call_did() {
        let parts = |waited, elements, transfers| {
            let Steady { elements_s, transfers_s, rest_s } = Steady::of(waited, elements, transfers);
            [elements_s, transfers_s, rest_s]
        };
        assert_eq!(parts(8.0, 2.0, 4.0), [2.0, 4.0, 2.0]);
        // A first call that sent two batches, the second of which the loader saw behind its own first.
        assert_eq!(parts(8.0, 2.0, 7.0), [2.0, 6.0, 0.0]);
        assert_eq!(parts(8.0, 9.0, 1.0), [8.0, 0.0, 0.0]);
        assert_eq!(parts(0.0, 1.0, 1.0), [0.0, 0.0, 0.0]);
    }
}

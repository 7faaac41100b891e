//! The deal of one part, batch by batch, and what it gains.

use super::{Balance, Deal, Part, RankLoad, RankRows, RowBatch, RowNumbers, deal_rows};
use crate::error::Result;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Dealer {
    pub(crate) part: Part,
    pub(crate) deal: Deal,
    gain: Gain,
}

/// Loads of ranks in a batch, or in those so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gain {
    even: RankLoad,
    balanced: RankLoad,
    /// Column that costs were read from last.
    column: String,
}

impl Dealer {
    /// A part and a deal that have been [checked](Deal::check).
    pub(crate) fn new(part: Part, deal: Deal) -> Self {
        Self { part, deal, gain: Gain::default() }
    }

    /// The rows that the part has of `batch`; the first of its rows have been `planned` to cost so much, whatever they hold.
    ///
    /// # Errors
    /// As [`Part::rows`], [`Cost::of_rows`](super::Cost::of_rows) and [`deal_rows`].
    pub(crate) fn rows(&mut self, batch: &impl RowBatch, planned: Option<&[u64]>) -> Result<RowNumbers> {
        let Some(balance) = self.deal.balance() else { return self.part.rows(batch.num_rows()?) };
        let (mut costs, column) = balance.cost.of_rows(batch)?;
        costs.iter_mut().zip(planned.unwrap_or_default()).for_each(|(cost, planned)| *cost = *planned);
        let (rows, gain) = self.deal.rows(&self.part, &costs, &column)?;
        self.count(gain.unwrap_or_default());
        Ok(rows)
    }

    /// Counts what it gained to deal a batch.
    pub(crate) fn count(&mut self, gain: Gain) {
        let Gain { even, balanced, column } = gain;
        if !column.is_empty() {
            self.gain.even += even;
            self.gain.balanced += balanced;
            self.gain.column = column;
        }
    }

    /// Says what balance gains, or would.
    pub(crate) fn remark(&self) -> Option<String> {
        let (Gain { even, balanced, column }, micro) = (&self.gain, self.deal.balance()?.micro);
        let (_, ranks) = self.part.as_share().filter(|_| !column.is_empty())?;
        let saved = |now: f64, then: f64| if now > 0.0 { 100.0 * (1.0 - then / now) } else { 0.0 };
        let saves = if let Deal::Shadow(_) = self.deal { "would save" } else { "saves" };
        let mut text = format!("a balanced deal {saves} {:.0} % of the step", saved(even.slowest, balanced.slowest));
        if micro > 1 {
            let saved = saved(even.slowest_in_micro, balanced.slowest_in_micro);
            text += &format!(", {saved:.0} % where ranks wait for each other in each of {micro} micro-steps");
        }
        text += &format!(
            ": the slowest of {ranks} ranks has {:.3} of the mean cost if dealt evenly, {:.3} balanced",
            even.straggle(),
            balanced.straggle()
        );
        if micro > 1 {
            text +=
                &format!(", in a micro-step {:.3} and {:.3}", even.straggle_in_micro(), balanced.straggle_in_micro());
        }
        Some(text + &format!("; costs are read from `{column}`"))
    }
}

impl Deal {
    /// The rows that `part` has of a batch whose rows cost so much, as `column` says, and what it gains to balance them, or would.
    ///
    /// # Errors
    /// As [`Part::rows`] and [`deal_rows`].
    pub(crate) fn rows(&self, part: &Part, costs: &[u64], column: &str) -> Result<(RowNumbers, Option<Gain>)> {
        let rows = part.rows(costs.len())?;
        let (Some(Balance { micro, .. }), Some((rank, ranks))) = (self.balance(), part.as_share()) else {
            return Ok((rows, None));
        };
        let dealt = deal_rows(costs, ranks, *micro)?;
        let even = RankRows::even(costs.len(), ranks, *micro)?.load(costs);
        let gain = Gain { even, balanced: dealt.load(costs), column: column.to_owned() };
        match self {
            Self::Balanced(_) => Ok((RowNumbers::listed(dealt.rank(rank), rows.batch()), Some(gain))),
            Self::Even | Self::Lanes | Self::Shadow(_) => Ok((rows, Some(gain))),
        }
    }
}

impl Part {
    /// The rows that it has of a batch whose rows stand at these `places`, where rows are dealt in the order of those.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub(crate) fn rows_by<K: Ord>(&self, places: &[K]) -> Result<RowNumbers> {
        let rows = self.rows(places.len())?;
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&row| &places[row]);
        let own: Vec<usize> = rows.iter().map(|run| order[run]).collect();
        Ok(RowNumbers::listed(&own, rows.batch()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::*;
    use crate::{Array, Element};

    #[test]
    fn a_shadow_deals_evenly_and_says_what_balance_would_gain() {
        let batch = Element::new().with("n", Array::from_vec(vec![30i64, 50, 10, 10]));
        let balance = Balance::new(Cost::column("n"));
        let mut told = Vec::new();
        for deal in [Deal::Even, Deal::Shadow(balance.clone()), Deal::Balanced(balance.clone().micro(2))] {
            let mut dealer = Dealer::new(Part::of(1, 2), deal);
            assert_eq!(dealer.remark(), None);
            let rows: Vec<usize> = dealer.rows(&batch, None).unwrap().iter().collect();
            told.push((rows, dealer.remark().unwrap_or_default()));
        }
        let expected = [
            (vec![2, 3], ""),
            (
                vec![2, 3],
                "a balanced deal would save 25 % of the step: the slowest of 2 ranks has 1.600 of the mean cost if dealt evenly, \
                 1.200 balanced; costs are read from `n`",
            ),
            (
                vec![0, 2],
                "a balanced deal saves 25 % of the step, 25 % where ranks wait for each other in each of 2 micro-steps: the slowest of \
                 2 ranks has 1.600 of the mean cost if dealt evenly, 1.200 balanced, in a micro-step 1.600 and 1.200; costs are read \
                 from `n`",
            ),
        ];
        assert_eq!(told, expected.map(|(rows, text)| (rows, text.to_owned())));
    }
}

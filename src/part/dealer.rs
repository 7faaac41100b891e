//! Assignment of rows to one part, batch by batch, with a measure of its gain.

use super::{Balance, Deal, Part, RankLoad, RankRows, RowBatch, RowNumbers, deal_rows};
use crate::error::Result;

/// State of the assignment for one part: see the [module](self).
#[derive(Debug)]
pub(crate) struct Dealer {
    pub(crate) part: Part,
    pub(crate) deal: Deal,
    gain: Gain,
}

/// Loads of the ranks for one batch, or summed over batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gain {
    even: RankLoad,
    balanced: RankLoad,
    /// Column from which the last costs were read.
    column: String,
}

impl Dealer {
    /// Creates a dealer. `part` and `deal` must have been [checked](Deal::check).
    pub(crate) fn new(part: Part, deal: Deal) -> Self {
        Self { part, deal, gain: Gain::default() }
    }

    /// Returns the rows of `batch` for the part. `planned` replaces the costs of the first rows, regardless of their content.
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

    /// Adds the gain of a batch.
    pub(crate) fn count(&mut self, gain: Gain) {
        let Gain { even, balanced, column } = gain;
        if !column.is_empty() {
            self.gain.even += even;
            self.gain.balanced += balanced;
            self.gain.column = column;
        }
    }

    /// Returns a remark with the gain of balance, or with the possible gain.
    pub(crate) fn remark(&self) -> Option<String> {
        let (Gain { even, balanced, column }, micro) = (&self.gain, self.deal.balance()?.micro);
        let (_, ranks) = self.part.as_share().filter(|_| !column.is_empty())?;
        let saved = |now: f64, then: f64| if now > 0.0 { 100.0 * (1.0 - then / now) } else { 0.0 };
        let saves = if let Deal::Shadow(_) = self.deal { "would save" } else { "saves" };
        let mut text = format!("a balanced deal {saves} {:.0} % of the step", saved(even.slowest, balanced.slowest));
        if micro > 1 {
            let saved = saved(even.slowest_in_micro, balanced.slowest_in_micro);
            text += &format!(", {saved:.0} % if ranks wait for each other in each of {micro} micro-steps");
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
    /// Returns the rows of `part` for a batch with these costs, and the gain of balance.
    ///
    /// `column` is the column from which the costs were read. The gain is `None` if the policy computes no balance.
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
    /// Returns the rows of the part, assigned in the order of `places`. There is one place per row of the batch.
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
                "a balanced deal saves 25 % of the step, 25 % if ranks wait for each other in each of 2 micro-steps: the slowest of \
                 2 ranks has 1.600 of the mean cost if dealt evenly, 1.200 balanced, in a micro-step 1.600 and 1.200; costs are read \
                 from `n`",
            ),
        ];
        assert_eq!(told, expected.map(|(rows, text)| (rows, text.to_owned())));
    }
}

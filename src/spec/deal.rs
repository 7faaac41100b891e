//! The deal of rows among parts in a pipeline file.

use super::arguments::{Arguments, Kind, arguments};
use super::decode::Fields;
use super::node::{Node, Tree};
use super::values::{AtLeast, Decode, decode_as};
use crate::error::{Error, Result};
use crate::part::{Balance, Cost, Deal};

arguments! {
    pub(super) struct DealArgs {
        /// Costs by which rows are balanced among the ranks.
        balanced: Option<Balanced>,
        /// Costs for a report of the time that balancing would save. The ranks get consecutive rows.
        shadow: Option<Balanced>,
    }
}

arguments! {
    pub(super) struct BalanceArgs {
        /// Width of a transformer, whose layers determine the cost of a row: 24 times the width for each token, plus 2 for each squared
        /// sequence length.
        d_model: Option<AtLeast<1>>,
        /// Whether attention is causal; only with `d_model`. If false, a squared sequence length costs 4 instead of 2. By default, true.
        causal: Option<bool>,
        /// Cost of a token, instead of `d_model`.
        per_token: Option<u64>,
        /// Cost of a squared sequence length, instead of `d_model`.
        per_square: Option<u64>,
        /// Column with the cost of each row, instead of all other costs.
        column: Option<String>,
        /// Number of tokens to each side that a token attends to, including itself. By default, the whole sequence.
        window: Option<AtLeast<1>>,
        /// Column of segment ids; each run of equal ids is a sequence. By default, the first column whose name ends in `segment_ids` or
        /// `segmentation`.
        segments: Option<String>,
        /// Column with the sequence lengths of each row, instead of segment ids.
        lengths: Option<String>,
        /// Number of consecutive micro-steps into which each rank splits its rows.
        micro_steps: AtLeast<1> = 1,
    }
}

/// A deal in a pipeline file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dealt(pub(super) Deal);

impl Decode for Dealt {
    const KIND: Kind = Kind::Either(&[Kind::Words(&["even", "lanes"]), Kind::Section(&DealArgs::ABOUT)]);

    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::Str(word) if word == "even" => return Ok(Self(Deal::Even)),
            Tree::Str(word) if word == "lanes" => return Ok(Self(Deal::Lanes)),
            Tree::Str(word) => return Err(node.error(format!("`{word}` is no deal")).help(FORMS)),
            _ => {}
        }
        let fields = Fields::new(node)?;
        let args = DealArgs::read(&fields)?;
        fields.finish()?;
        match (args.balanced, args.shadow) {
            (Some(balance), None) => Ok(Self(Deal::Balanced(balance.0))),
            (None, Some(balance)) => Ok(Self(Deal::Shadow(balance.0))),
            (Some(_), Some(_)) => Err(node.error("`balanced` and `shadow` exclude each other")),
            (None, None) => Err(node.error("needs `balanced` or `shadow`").help(FORMS)),
        }
    }
}

/// The forms of a deal.
const FORMS: &str = "`even`, `lanes`, `balanced: {d_model: 4096}` or `shadow: {d_model: 4096}`";

/// Balance of rows in a pipeline file.
struct Balanced(Balance);

decode_as!(Balanced, Kind::Section(&BalanceArgs::ABOUT), |node| {
    let fields = Fields::new(node)?;
    let args = BalanceArgs::read(&fields)?;
    fields.finish()?;
    if let Some(text) = args.contradiction() {
        return Err(fields.error(text));
    }
    let cost = args.cost().ok_or_else(|| unpriced(&fields))?;
    Ok(Self(Balance::new(cost).micro(number(args.micro_steps))))
});

#[cold]
fn unpriced(fields: &Fields<'_>) -> Error {
    fields.error("needs the cost of a row").help(
        "`d_model` for a transformer of this width, `per_token` and `per_square`, or `column` for a column of costs",
    )
}

impl BalanceArgs {
    /// Returns the reason why arguments exclude each other.
    fn contradiction(&self) -> Option<&'static str> {
        let factors = self.per_token.or(self.per_square).is_some();
        let ways = [self.d_model.is_some(), factors, self.column.is_some()];
        let read = self.segments.is_some() || self.lengths.is_some() || self.window.is_some();
        if ways.iter().filter(|&&way| way).count() > 1 {
            Some("`d_model`, `per_token` with `per_square`, and `column` exclude each other")
        } else if self.causal.is_some() && self.d_model.is_none() {
            Some("`causal` is about attention, and needs its width `d_model`")
        } else if self.column.is_some() && read {
            Some("`column` has the cost of each row, and excludes `window`, `segments` and `lengths`")
        } else if self.segments.is_some() && self.lengths.is_some() {
            Some("give `segments` or `lengths`, not both")
        } else {
            None
        }
    }

    /// Returns the cost of a row, if it is given.
    fn cost(&self) -> Option<Cost> {
        let cost = match (self.d_model, &self.column) {
            (Some(width), _) => Cost::attention(number(width), None, self.causal.unwrap_or(true)),
            (None, Some(name)) => return Some(Cost::column(name)),
            (None, None) => {
                self.per_token.or(self.per_square)?;
                Cost::new(self.per_token.unwrap_or(0), self.per_square.unwrap_or(0))
            }
        };
        let cost = self.window.map_or(cost.clone(), |window| cost.window(number(window)));
        Some(match (&self.segments, &self.lengths) {
            (Some(name), _) => cost.segments(name),
            (None, Some(name)) => cost.lengths(name),
            (None, None) => cost,
        })
    }
}

fn number(given: AtLeast<1>) -> usize {
    usize::try_from(given.0).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::yaml;

    fn parse_deal(text: &str) -> Result<Deal> {
        let mut node = yaml::parse(text)?;
        node.set_paths("deal".to_owned());
        Dealt::decode(&node).map(|dealt| dealt.0)
    }

    fn balanced(text: &str) -> Balance {
        match parse_deal(&format!("balanced: {text}")) {
            Ok(Deal::Balanced(balance)) => balance,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn costs_are_those_of_their_constructors() {
        let cases = [
            ("{d_model: 64}", Cost::attention(64, None, true)),
            ("{d_model: 64, window: 9, causal: false}", Cost::attention(64, Some(9), false)),
            ("{d_model: 64, lengths: n}", Cost::attention(64, None, true).lengths("n")),
            ("{per_token: 3}", Cost::new(3, 0)),
            ("{per_square: 1, window: 2, segments: s}", Cost::new(0, 1).window(2).segments("s")),
            ("{column: patches}", Cost::column("patches")),
        ];
        for (text, cost) in cases {
            assert_eq!(balanced(text), Balance::new(cost), "{text}");
        }
        assert_eq!(balanced("{column: n, micro_steps: 8}"), Balance::new(Cost::column("n")).micro(8));
        assert_eq!(parse_deal("even").unwrap(), Deal::Even);
        assert_eq!(parse_deal("{shadow: {column: n}}").unwrap(), Deal::Shadow(Balance::new(Cost::column("n"))));
    }

    #[test]
    fn what_is_no_deal_is_refused_where_it_stands() {
        let refused = |text: &str| {
            let error = parse_deal(text).unwrap_err();
            format!("{} | {}", error.message(), error.help_text().unwrap_or("-"))
        };
        assert_eq!(refused("fair"), format!("deal: `fair` is no deal | {FORMS}"));
        assert_eq!(refused("{}"), format!("deal: needs `balanced` or `shadow` | {FORMS}"));
        assert!(refused("balanced: {}").starts_with("deal.balanced: needs the cost of a row | `d_model` for"));
        assert_eq!(refused("{balanced: {d_modl: 1}}"), "deal.balanced: unknown key `d_modl` | did you mean `d_model`?");
        let cases = [
            ("{d_model: 1, column: a}", "exclude each other"),
            ("{per_token: 1, causal: true}", "`causal` is about attention"),
            ("{column: a, window: 2}", "excludes `window`"),
            ("{d_model: 1, segments: a, lengths: b}", "not both"),
            ("{d_model: 1, micro_steps: 0}", "must be at least 1"),
        ];
        for (text, told) in cases {
            assert!(refused(&format!("balanced: {text}")).contains(told), "{text}");
        }
        assert!(refused("{balanced: {column: a}, shadow: {column: a}}").contains("exclude each other"));
    }
}

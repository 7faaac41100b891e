//! The options of a mix, in pipeline files and in Python.

use super::iter::{IterMix, mix};
use super::map::Mix;
use super::weights::Weights as MixWeights;
use super::{AtEnd, IterDataset, MapDataset};
use crate::declare::arguments::{Arguments, Kind, arguments, read, words};
use crate::declare::node::{Node, Tree};
use crate::declare::suggest::nearest;
use crate::declare::values::{AtLeast, Map, decode_as, wrong};
use crate::error::{Error, Result};
use crate::rng::{Schedule, ScheduleEntry};

arguments! {
    pub(crate) struct MixOptions {
        /// Whether to keep the proportions exactly. If false, weights are rounded as in Grain. Weights of a schedule and weights that count
        /// tokens are always exact.
        exact: bool = false,
        /// Weights of the parts, in order or by name. By default, all weights are equal.
        weights: Option<Weights>,
        /// Weights that change during the run, in place of `weights`.
        schedule: Option<Changes>,
        /// Unit of weights, positions and budgets: elements, or tokens. Only streams can count tokens.
        by: Unit = "elements",
        /// Column whose length is the number of tokens of an element, with `by: tokens`.
        column: String = "tokens",
        /// What happens if a part ends: the mix ends, the part is read again, or its weight is divided among the other parts. The last
        /// requires streams.
        at_end: AtEnd = "stop",
        /// Elements or tokens after which a part ends, by the names of the parts. The element that reaches the limit is part of the mix.
        /// Only for streams.
        budget: Option<Map<Count>>,
        /// Names of the parts, for `weights`, `schedule` and `budget`. By default, their numbers from 0 on.
        names: Option<Vec<String>>,
    }
}

arguments! {
    pub(crate) struct ScheduleArgs(entries) {
        /// Weights and their first positions, in order. The first entry is at position 0.
        entries: Vec<Entry>,
        /// Length of the linear transition to each entry after the first. 0 changes weights at once. A transition has at most 100 equal
        /// steps.
        over: u64 = 0,
        /// Number by which positions and transitions are multiplied, so that they count training steps.
        batch_size: AtLeast<1> = 1,
    }
}

arguments! {
    pub(crate) struct EntryArgs {
        /// First position in the mix with these weights, in elements or tokens.
        at: u64,
        /// Weights of the parts, in order or by name. A part with weight 0 is absent. Parts that are not named have weight 0.
        weights: Weights,
        /// Length of the transition to this entry, in place of the schedule's.
        over: Option<u64>,
    }
}

words!(AtEnd {
    "stop" => AtEnd::Stop,
    "repeat" => AtEnd::Repeat,
    "redistribute" => AtEnd::Redistribute,
});

/// Unit of weights.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Elements,
    Tokens,
}

words!(Unit { "elements" => Unit::Elements, "tokens" => Unit::Tokens });

/// A whole number above 0, which may be written as `6e9`.
struct Count(u64);

decode_as!(Count, AtLeast::<1>::KIND, |node| {
    // Below 2^63, such a number is exact.
    let whole = |number: f64| number.fract() == 0.0 && (1.0..9.2e18).contains(&number);
    match node.value {
        Tree::Float(number) if whole(number) => Ok(Self(number as u64)),
        _ => AtLeast::<1>::decode(node).map(|AtLeast(count)| Self(count)),
    }
});

/// Weights of parts.
enum Weights {
    InOrder(Vec<f64>),
    ByName(Vec<(String, f64)>),
}

decode_as!(Weights, Kind::Either(&[Kind::List(&Kind::Number), Kind::Map(&Kind::Number)]), |node| {
    match node.value {
        Tree::Map(_) => Map::decode(node).map(|Map(weights)| Self::ByName(weights)),
        Tree::List(_) | Tree::Int(_) | Tree::Float(_) => Vec::decode(node).map(Self::InOrder),
        _ => Err(wrong(node, "a list of numbers, or a mapping of names to numbers")),
    }
});

impl Weights {
    /// Returns a weight for each name.
    fn of(self, names: &[String]) -> Result<Vec<f64>> {
        match self {
            Self::InOrder(weights) if weights.len() != names.len() => {
                Err(Error::config(format!("{} weights for {} parts", weights.len(), names.len())))
            }
            Self::InOrder(weights) => Ok(weights),
            Self::ByName(weights) => {
                let mut all = vec![0.0; names.len()];
                for (name, weight) in weights {
                    all[number_of(&name, names)?] = weight;
                }
                Ok(all)
            }
        }
    }
}

/// Returns the number of the part of this name.
fn number_of(name: &str, names: &[String]) -> Result<usize> {
    names.iter().position(|known| known == name).ok_or_else(|| {
        let error = Error::config(format!("no part of the mix is named `{name}`"));
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("the parts are {}", names.join(", "))),
        }
    })
}

/// An entry of a schedule.
struct Entry(EntryArgs);

decode_as!(Entry, Kind::Section(&EntryArgs::ABOUT), |node| read(node).map(Self));

/// A schedule, before the names of the parts are given.
struct Changes(ScheduleArgs);

decode_as!(Changes, Kind::Section(&ScheduleArgs::ABOUT), |node| read(node).map(Self));

impl Changes {
    fn schedule(self, names: &[String]) -> Result<Schedule> {
        let Self(ScheduleArgs { entries, over: common, batch_size }) = self;
        let entry = |(number, Entry(EntryArgs { at, weights, over }))| {
            let common = if number == 0 { 0 } else { common };
            Ok(ScheduleEntry { at, weights: weights.of(names)?, over: over.unwrap_or(common) })
        };
        let entries = entries.into_iter().enumerate().map(entry).collect::<Result<_>>()?;
        Schedule::of(entries).per_step(batch_size.0)
    }
}

/// The options of a mix of certain parts.
pub(crate) struct Mixing {
    weights: MixWeights,
    /// The column that is counted, if weights count tokens.
    column: Option<String>,
    at_end: AtEnd,
    budget: Vec<(usize, u64)>,
    /// Names of the parts, if given.
    names: Vec<String>,
}

impl MixOptions {
    /// Reads the options of a mix of `count` parts from a mapping.
    #[cfg(feature = "python")]
    pub(crate) fn of(options: Tree, count: usize) -> Result<Mixing> {
        let mut node = Node::new(options, 0, 0);
        node.set_paths("mix".to_owned());
        read::<Self>(&node)?.of_parts(count)
    }

    /// Applies the options to `count` parts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if counts differ, or if a name is unknown or occurs twice.
    pub(crate) fn of_parts(self, count: usize) -> Result<Mixing> {
        let Self { exact, weights, schedule, by, column, at_end, budget, names } = self;
        let given = names.clone().unwrap_or_default();
        let names = names.unwrap_or_else(|| (0..count).map(|number| number.to_string()).collect());
        if names.len() != count {
            return Err(Error::config(format!("{} names for {count} parts", names.len())));
        }
        if let Some(name) = (1..count).find(|&number| names[..number].contains(&names[number])).map(|n| &names[n]) {
            return Err(Error::config(format!("two parts of the mix are named `{name}`")));
        }
        let weights = match (weights, schedule) {
            (Some(_), Some(_)) => {
                return Err(Error::config("`weights` and `schedule` of a mix exclude each other")
                    .help("make the weights the first entry of the schedule, at position 0"));
            }
            (None, Some(changes)) => MixWeights::Scheduled(changes.schedule(&names)?),
            (weights, None) => {
                let weights = weights.map_or_else(|| Ok(vec![1.0; count]), |weights| weights.of(&names))?;
                if exact { MixWeights::Exact(weights) } else { MixWeights::LikeGrain(weights) }
            }
        };
        let limit = |(name, Count(limit)): (String, Count)| Ok((number_of(&name, &names)?, limit));
        let budget =
            budget.map_or_else(Vec::new, |Map(budget)| budget).into_iter().map(limit).collect::<Result<_>>()?;
        Ok(Mixing { weights, column: (by == Unit::Tokens).then_some(column), at_end, budget, names: given })
    }
}

impl Mixing {
    /// Mixes datasets with random access.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for options that only streams have.
    pub(crate) fn over_maps<D: MapDataset>(self, parts: Vec<D>) -> Result<Mix<D>> {
        let only_streams = [
            (self.column.is_some(), "by: tokens"),
            (!self.budget.is_empty(), "budget"),
            (self.at_end == AtEnd::Redistribute, "at_end: redistribute"),
        ];
        if let Some((_, option)) = only_streams.iter().find(|(is_given, _)| *is_given) {
            return Err(Error::config(format!("a mix with random access has no `{option}`"))
                .help("make the parts streams: `to_iter` as their last stage; in Python, `to_iter_dataset()` and `IterDataset.mix`"));
        }
        let mixed = Mix::new(parts).weighted(self.weights).named(self.names);
        Ok(if self.at_end == AtEnd::Stop { mixed } else { mixed.at_end(self.at_end) })
    }

    /// Mixes streams.
    pub(crate) fn over_streams<D: IterDataset>(self, parts: Vec<D>) -> IterMix<D> {
        let mixed = mix(parts).weighted(self.weights).at_end(self.at_end).named(self.names);
        let mixed = if let Some(column) = self.column { mixed.by_tokens(column) } else { mixed };
        self.budget.into_iter().fold(mixed, |mixed, (which, limit)| mixed.budget(which, limit))
    }
}

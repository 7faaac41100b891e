//! What a stream must yield, worked out with plain vectors.

use gristmill::Result;
use gristmill::rng::{DEFAULT_ROUNDS, permutation};

/// Elements that a filter is judged by.
pub(crate) const WINDOW: usize = 1000;

/// What a stream yields, and what the error says that ends it, if one does.
#[derive(Clone, Debug)]
pub(crate) struct Twin {
    pub(crate) items: Vec<i64>,
    pub(crate) error: Option<String>,
}

pub(crate) const TOO_MANY: &str = "elements were dropped, the limit is";

/// Whether so many of a window are too many.
pub(crate) fn too_many(dropped: usize, raise: Option<f64>) -> bool {
    raise.is_some_and(|limit| dropped as f64 / WINDOW as f64 >= limit)
}

impl Twin {
    /// What lies behind is not read, even if it would fail.
    pub(crate) fn limit(&mut self, n: usize) {
        if self.items.len() >= n {
            self.items.truncate(n);
            self.error = None;
        }
    }

    /// Element `i`, nothing at the end, or the error.
    pub(crate) fn get(&self, i: usize) -> std::result::Result<Option<i64>, String> {
        match (self.items.get(i), &self.error) {
            (None, Some(error)) => Err(error.clone()),
            (item, _) => Ok(item.copied()),
        }
    }

    pub(crate) fn each(self, f: impl Fn(usize, i64) -> Vec<i64>) -> Self {
        let items = self.items.into_iter().enumerate().flat_map(|(i, x)| f(i, x)).collect();
        Self { items, ..self }
    }

    pub(crate) fn try_each(mut self, f: impl Fn(i64) -> Result<i64>) -> Self {
        if let Some((at, error)) = self.items.iter().enumerate().find_map(|(at, x)| Some((at, f(*x).err()?))) {
            self.items.truncate(at);
            self.error = Some(error.message().to_owned());
        }
        self
    }

    /// Groups of `size`; the last may be smaller, unless it is dropped or an error comes before its end.
    pub(crate) fn groups(&self, size: usize, drop: bool) -> impl Iterator<Item = &[i64]> {
        let whole = drop || self.error.is_some();
        self.items.chunks(size).filter(move |group| !whole || group.len() == size)
    }

    /// What is kept, as long as not too many of a window are dropped.
    pub(crate) fn sift(self, keep: impl Fn(i64) -> bool, raise: Option<f64>) -> Self {
        let (mut items, mut dropped) = (Vec::new(), 0);
        for (i, &x) in self.items.iter().enumerate() {
            dropped += usize::from(!keep(x));
            if (i + 1) % WINDOW == 0 && too_many(std::mem::take(&mut dropped), raise) {
                return Self { items, error: Some(TOO_MANY.to_owned()) };
            }
            items.extend(Some(x).filter(|x| keep(*x)));
        }
        Self { items, ..self }
    }
}

/// So many times the same, up to what fails.
pub(crate) fn epochs(twin: Twin, n: usize) -> Twin {
    match twin {
        Twin { error: Some(_), .. } => twin,
        Twin { items, error } => Twin { items: items.repeat(n), error },
    }
}

/// Rows of one element of each. The first that fails says how it ends, unless one before it has come to its end.
pub(crate) fn zipped(twins: &[Twin], combined: impl Fn(&[i64]) -> i64) -> Twin {
    let mut items = Vec::new();
    loop {
        let (mut row, mut failed) = (Vec::new(), None);
        for twin in twins {
            match twin.get(items.len()) {
                Ok(Some(x)) => row.push(x),
                Ok(None) => break,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if row.len() < twins.len() {
            return Twin { items, error: failed };
        }
        items.push(combined(&row));
    }
}

/// Windows of the published permutation, each from its end.
pub(crate) fn shuffled(twin: Twin, window: usize, seed: u32) -> Twin {
    let one = |(number, items): (usize, &[i64])| {
        let order = permutation(items.len() as u32, seed.wrapping_add(number as u32), DEFAULT_ROUNDS).unwrap();
        order.into_iter().rev().map(|i| items[i as usize]).collect::<Vec<_>>()
    };
    let items = twin.groups(window, false).enumerate().flat_map(one).collect();
    Twin { items, ..twin }
}

/// Interleaving, played with queues.
pub(crate) fn rounds(twins: &[Twin], cycle: usize) -> Twin {
    let places = cycle.min(twins.len()).max(1);
    let mut waiting = twins.iter();
    let mut open: Vec<Option<(&Twin, usize)>> = vec![None; places];
    let mut items = Vec::new();
    for turn in 0.. {
        let place = &mut open[turn % places];
        *place = place.or_else(|| waiting.next().map(|twin| (twin, 0)));
        match place.map(|(twin, at)| twin.get(at)) {
            Some(Ok(Some(x))) => {
                items.push(x);
                *place = place.map(|(twin, at)| (twin, at + 1));
            }
            Some(Ok(None)) => *place = None,
            Some(Err(error)) => return Twin { items, error: Some(error) },
            None if open.iter().all(Option::is_none) => break,
            None => {}
        }
    }
    Twin { items, error: None }
}

/// Lanes, each of them one list: every so-many-th twin, up to the first that fails.
pub(crate) fn side_by_side(twins: &[Twin], count: usize) -> Twin {
    let lane = |first| {
        let mut lane = Twin { items: Vec::new(), error: None };
        for twin in twins.iter().skip(first).step_by(count) {
            if lane.error.is_none() {
                lane.items.extend(&twin.items);
                lane.error = twin.error.clone();
            }
        }
        lane
    };
    let lanes: Vec<Twin> = (0..count).map(lane).collect();
    let mut items = Vec::new();
    for round in 0..=lanes.iter().map(|lane| lane.items.len()).max().unwrap_or(0) {
        for lane in &lanes {
            match lane.get(round) {
                Ok(item) => items.extend(item),
                Err(error) => return Twin { items, error: Some(error) },
            }
        }
    }
    Twin { items, error: None }
}

/// Grain's proportions: of the first `k` elements, `ceil(k * w / (w + rest))` are of the first dataset, and so on with the rest.
pub(crate) fn mixed(twins: &[Twin], weights: &[u32]) -> Twin {
    let least = f64::from(*weights.iter().min().unwrap());
    let parts: Vec<u64> = weights.iter().map(|w| (f64::from(*w) * (100.0 / least)) as u64).collect();
    let counts = |mut k: u64| {
        let mut rest: u64 = parts.iter().sum();
        let mut counts = Vec::new();
        for part in &parts {
            let others = k * (rest - part) / rest;
            counts.push(k - others);
            (k, rest) = (others, rest - part);
        }
        counts
    };
    let mut items = Vec::new();
    for k in 0.. {
        let (before, after) = (counts(k), counts(k + 1));
        let from = (0..twins.len()).find(|&i| before[i] != after[i]).unwrap();
        match twins[from].get(before[from] as usize) {
            Ok(Some(x)) => items.push(x),
            Ok(None) => break,
            Err(error) => return Twin { items, error: Some(error) },
        }
    }
    Twin { items, error: None }
}

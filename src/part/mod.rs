//! Assignment of the rows of a global batch to consumers.
//!
//! A pipeline makes *global* batches, independent of their readers. Topology is not part of the pipeline, its state, its fingerprint or
//! its digest. The [`Part`] given to a pass selects the rows that this consumer takes of each global batch. A [`RowDigest`] shows that
//! the rows of all parts together equal the rows of a single consumer.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::part::Part;
//! use gristmill::prelude::*;
//!
//! let ds = || Range::new(0, 16).shuffle(42).to_iter().batch(8);
//! let whole: Vec<Vec<i64>> = ds().loader().build()?.collect::<gristmill::Result<_>>()?;
//! let host: Vec<Vec<i64>> = ds().loader().part(Part::of(1, 4)).build()?.collect::<gristmill::Result<_>>()?;
//! assert_eq!(host, [&whole[0][2..4], &whole[1][2..4]]);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! A part has consecutive rows, unless a [`Deal`] balances the cost of rows among equal parts:
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::part::{Balance, Cost, Deal, Part};
//! use gristmill::prelude::*;
//! use gristmill::{Array, Element};
//!
//! let row = |x: i64| Element::new().with("len", Array::scalar([1i64, 900, 100, 1000][x as usize % 4]));
//! let deal = Deal::Balanced(Balance::new(Cost::attention(64, None, true).lengths("len")));
//! let batches = Range::new(0, 16).map(row).to_iter().batch(4);
//! let mut host = batches.loader().part(Part::of(0, 2)).deal(deal).build()?;
//! let batch = host.next().expect("four batches")?;
//! assert_eq!(batch.array("len")?.as_slice::<i64>()?, [1000, 1]);
//! assert!(host.rows().is_some_and(|rows| rows.iter().eq([3, 0])));
//! # Ok::<(), gristmill::Error>(())
//! ```

mod contents;
mod cost;
mod deal;
mod dealer;
mod digest;
mod guard;
mod row_batch;

use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

pub(crate) use contents::{BatchContents, SourceContents};
pub use cost::Cost;
pub use deal::{Balance, Deal, RankLoad, RankRows, deal_rows};
pub(crate) use dealer::{Dealer, Gain};
pub use digest::{DigestRows, RowDigest};
pub use guard::{DigestBatch, EVERY, Exchange, Fed, Guard, InMemory, SharedFolder, Statement, compare};
pub(crate) use guard::{last_words, meeting, silent, wants_details};
pub use row_batch::RowBatch;

use crate::error::{Error, Result};

/// Rows of every global batch that one consumer takes: an equal share, or a list of rows.
///
/// Consumers that compute on identical rows, such as tensor- and pipeline-parallel peers, have equal parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Share { index: usize, count: usize },
    Listed { rows: Arc<[usize]>, batch: usize },
}

impl Part {
    /// Creates share `index` of `count` equal shares: of a global batch of 512 rows, `of(3, 64)` has rows 24 to 31.
    ///
    /// A pass checks at its start that `index` is below `count`. The rows of each batch must divide into `count` shares.
    pub const fn of(index: usize, count: usize) -> Self {
        Self(Kind::Share { index, count })
    }

    /// Creates the part with all rows.
    pub const fn whole() -> Self {
        Self::of(0, 1)
    }

    /// Creates a part with these rows, in this order, of batches of `batch` rows.
    ///
    /// Suits sharded arrays: list the rows that the devices of a process hold.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the list is empty, or contains a row that such a batch does not have.
    pub fn listed(rows: impl IntoIterator<Item = usize>, batch: usize) -> Result<Self> {
        let rows: Arc<[usize]> = rows.into_iter().collect();
        match rows.iter().find(|&&row| row >= batch) {
            Some(row) => Err(Error::config(format!("a part has row {row}, but batches have {batch} rows"))),
            None if rows.is_empty() => Err(Error::config("a part has no rows")),
            None => Ok(Self(Kind::Listed { rows, batch })),
        }
    }

    /// Checks the part as far as possible without a batch.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the index of a share is not below the number of shares.
    pub fn check(&self) -> Result<()> {
        match self.0 {
            Kind::Share { index, count } if index >= count => {
                Err(Error::config(format!("there is no part {self}")).help("parts are 0/N to N-1/N"))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if this is the first of equal shares, which acts on behalf of all parts.
    pub fn is_first(&self) -> bool {
        matches!(self.0, Kind::Share { index: 0, .. })
    }

    /// Returns true if the part has the first row of a batch. Output that is equal on all hosts is written by the host with this part.
    pub(crate) fn has_first_row(&self) -> bool {
        match &self.0 {
            Kind::Share { index, .. } => *index == 0,
            Kind::Listed { rows, .. } => rows.contains(&0),
        }
    }

    /// Returns true if the part has at most half of the rows of a batch.
    pub(crate) fn is_half_at_most(&self) -> bool {
        match &self.0 {
            Kind::Share { count, .. } => *count >= 2,
            Kind::Listed { rows, batch } => rows.len() <= batch / 2,
        }
    }

    /// Returns the index and the number of equal shares, or `None` for listed rows.
    pub(crate) fn as_share(&self) -> Option<(usize, usize)> {
        match self.0 {
            Kind::Share { index, count } => Some((index, count)),
            Kind::Listed { .. } => None,
        }
    }

    /// Returns the listed rows and the number of rows of a batch, or `None` for a share.
    pub(crate) fn as_listed(&self) -> Option<(&[usize], usize)> {
        match &self.0 {
            Kind::Share { .. } => None,
            Kind::Listed { rows, batch } => Some((rows, *batch)),
        }
    }

    /// Returns the rows that the part has of a global batch of `batch` rows.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) as [`check`](Self::check). Also if `batch` rows do not divide into equal shares, or if a
    /// listed part was made for batches of another size.
    pub fn rows(&self, batch: usize) -> Result<RowNumbers> {
        self.check()?;
        let rows = match &self.0 {
            Kind::Share { index, count } if batch.is_multiple_of(*count) => {
                let each = batch / count;
                Rows::Range(index * each..(index + 1) * each)
            }
            Kind::Listed { rows, batch: expected } if *expected == batch => Rows::Listed(rows.clone()),
            Kind::Share { count, .. } => {
                let text = format!("a global batch of {batch} rows does not divide among {count} parts");
                return Err(Error::config(text).help(REMAINDER));
            }
            Kind::Listed { batch: expected, .. } => {
                let text = format!("a global batch has {batch} rows, but its parts were listed for {expected}");
                return Err(Error::config(text).help(REMAINDER));
            }
        };
        Ok(RowNumbers { rows, batch })
    }
}

/// Remedy for a global batch that does not divide.
const REMAINDER: &str = "choose a batch size that the number of parts divides, or list the rows of each host by `Part.listed`; if it is the last batch, let `batch` drop it or pad it";

display_as!(Part, |self, f| {
    match &self.0 {
        Kind::Share { index, count } => write!(f, "{index}/{count}"),
        Kind::Listed { rows, batch } => write!(f, "{} of {batch} rows", rows.len()),
    }
});

impl FromStr for Part {
    type Err = Error;

    /// Parses `INDEX/COUNT`, such as `3/64`.
    fn from_str(text: &str) -> Result<Self> {
        let share = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let (index, count) = share.ok_or_else(|| {
            Error::config(format!("`{text}` is no part")).help("a part is INDEX/COUNT, such as 3/64: the fourth of 64")
        })?;
        let part = Self::of(index, count);
        part.check().map(|()| part)
    }
}

/// Numbers of rows of a global batch, in the order in which they are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowNumbers {
    rows: Rows,
    batch: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rows {
    Range(Range<usize>),
    Listed(Arc<[usize]>),
}

impl RowNumbers {
    /// Creates a list of row numbers in a global batch of `batch` rows.
    fn listed(rows: &[usize], batch: usize) -> Self {
        Self { rows: Rows::Listed(rows.into()), batch }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Range(range) => range.len(),
            Rows::Listed(rows) => rows.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of rows of the global batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Returns the rows as a range if they are consecutive.
    pub fn as_range(&self) -> Option<Range<usize>> {
        match &self.rows {
            Rows::Range(range) => Some(range.clone()),
            Rows::Listed(rows) => {
                let first = *rows.first()?;
                let follow = rows.iter().enumerate().all(|(place, &row)| row == first + place);
                follow.then(|| first..first + rows.len())
            }
        }
    }

    /// Iterates over the row numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        (0..self.len()).map(|place| match &self.rows {
            Rows::Range(range) => range.start + place,
            Rows::Listed(rows) => rows[place],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_rows_once_and_in_order() {
        for count in [1, 2, 3, 4, 6, 12] {
            let all: Vec<usize> =
                (0..count).flat_map(|i| Part::of(i, count).rows(12).unwrap().iter().collect::<Vec<_>>()).collect();
            assert_eq!(all, (0..12).collect::<Vec<_>>());
        }
        assert_eq!(Part::of(3, 64).rows(512).unwrap().as_range(), Some(24..32));
        assert_eq!(Part::whole().rows(0).unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_part_is_refused_with_what_to_do() {
        let error = Part::of(0, 3).rows(8).unwrap_err();
        assert_eq!(error.message(), "a global batch of 8 rows does not divide among 3 parts");
        assert!(error.help_text().unwrap().contains("drop it or pad it"));
        assert_eq!(Part::of(4, 4).check().unwrap_err().message(), "there is no part 4/4");
        assert!(Part::of(0, 0).rows(8).is_err());
        assert!("3-64".parse::<Part>().unwrap_err().help_text().unwrap().contains("3/64"));
        assert!("4/4".parse::<Part>().is_err() && "-1/4".parse::<Part>().is_err());
        assert_eq!("3/64".parse::<Part>().unwrap(), Part::of(3, 64));
    }

    #[test]
    fn listed_rows_keep_their_order_and_their_batch() {
        let part = Part::listed([6, 7, 2], 8).unwrap();
        assert_eq!(part.rows(8).unwrap().iter().collect::<Vec<_>>(), [6, 7, 2]);
        assert_eq!(part.rows(8).unwrap().as_range(), None);
        assert_eq!(Part::listed([2, 3], 8).unwrap().rows(8).unwrap().as_range(), Some(2..4));
        assert!(part.rows(7).unwrap_err().message().contains("listed for 8"));
        assert!(Part::listed([8], 8).is_err() && Part::listed([], 8).is_err());
    }
}

//! Planned rows and their member elements, stored as columns of numbers without an allocation per row.

use super::PlanPass;
use super::stand_in::{Content, StandIn};
use crate::cx::{Cx, ElementId};
use crate::dataset::iter::{DatasetIterator, InPlace, Position};
use crate::element::StreamHasher;
use crate::error::Result;

/// An element of a planned row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: ElementId,
    /// The part of the element in the row. The stage that cuts the element defines its meaning.
    pub(crate) cut: Option<Box<[u64]>>,
}

/// The elements from which a planned element or row is made, in order.
pub(crate) type Recipe = Box<[Member]>;

/// Planned rows, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedRows {
    /// For each row, the number of members up to and including the row.
    ends: Vec<u64>,
    /// The element of each member.
    ids: Vec<ElementId>,
    /// The consecutive parts of cut members, and the end of each member's part. `cut_ends` is empty if no member is
    /// cut.
    cuts: Vec<u64>,
    cut_ends: Vec<u64>,
}

impl PlannedRows {
    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Removes all rows, and keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.ids.clear();
        self.cuts.clear();
        self.cut_ends.clear();
    }

    /// Adds a member to the current row. `cut` is the part of the member in the row; empty for the whole member.
    #[inline]
    pub(crate) fn push(&mut self, id: ElementId, cut: impl IntoIterator<Item = u64>) {
        let (members, before) = (self.ids.len(), self.cuts.len());
        self.cuts.extend(cut);
        self.ids.push(id);
        if self.cuts.len() > before || !self.cut_ends.is_empty() {
            self.cut_ends.resize(members, before as u64);
            self.cut_ends.push(self.cuts.len() as u64);
        }
    }

    /// Ends the current row.
    #[inline]
    pub(crate) fn end_row(&mut self) {
        self.ends.push(self.ids.len() as u64);
    }

    /// Adds the members of `other` to the current row, regardless of the rows of `other`.
    pub(crate) fn extend(&mut self, Self { ids, cuts, cut_ends, .. }: &Self) {
        let (members, before) = (self.ids.len(), self.cuts.len() as u64);
        self.ids.extend_from_slice(ids);
        if cut_ends.is_empty() && self.cut_ends.is_empty() {
            return;
        }
        self.cuts.extend_from_slice(cuts);
        // Members without a part are whole: the end of their part equals its start.
        self.cut_ends.resize(members, before);
        self.cut_ends.extend(cut_ends.iter().map(|end| before + end));
        self.cut_ends.resize(self.ids.len(), self.cuts.len() as u64);
    }

    /// Returns the range of the members of a row.
    pub(super) fn members(&self, row: usize) -> std::ops::Range<usize> {
        let end = |row: usize| self.ends.get(row).map_or(self.ids.len(), |&end| end as usize);
        row.checked_sub(1).map_or(0, end)..end(row)
    }

    /// Returns true if a member is a part of an element.
    pub(crate) fn has_cuts(&self) -> bool {
        !self.cut_ends.is_empty()
    }

    /// Returns the row of a member.
    pub(crate) fn row_of(&self, member: usize) -> usize {
        self.ends.partition_point(|&end| end <= member as u64)
    }

    /// Returns the part of a member; empty for the whole member.
    pub(crate) fn cut(&self, member: usize) -> &[u64] {
        let Some(&end) = self.cut_ends.get(member) else { return &[] };
        let start = member.checked_sub(1).map_or(0, |before| self.cut_ends[before]);
        self.cuts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns the members of row number `row`; empty if the row does not exist.
    pub(crate) fn recipe(&self, row: usize) -> Recipe {
        let member = |at: usize| {
            let cut = Some(self.cut(at)).filter(|cut| !cut.is_empty()).map(Into::into);
            Member { id: self.ids[at], cut }
        };
        self.members(row).map(member).collect()
    }

    /// Returns the elements of all members, row by row.
    pub(crate) fn ids(&self) -> &[ElementId] {
        &self.ids
    }

    /// Hashes the members of each row. The digest does not depend on how the rows were added.
    pub(crate) fn digest(&self) -> u128 {
        let mut hasher = StreamHasher::new();
        for numbers in [&*self.ends, bytemuck::cast_slice(&self.ids), &*self.cuts, &*self.cut_ends] {
            hasher.bytes(bytemuck::cast_slice(numbers));
        }
        hasher.finish()
    }

    /// Takes all rows, and leaves an empty list of similar capacity.
    pub(crate) fn take(&mut self) -> Self {
        fn take<T>(list: &mut Vec<T>) -> Vec<T> {
            let room = list.len();
            std::mem::replace(list, Vec::with_capacity(room))
        }
        let (ends, ids) = (take(&mut self.ends), take(&mut self.ids));
        Self { ends, ids, cuts: take(&mut self.cuts), cut_ends: take(&mut self.cut_ends) }
    }

    /// Takes all rows as an item of a plan. Returns `None` if there are no rows.
    pub(crate) fn take_batch(&mut self) -> Option<InPlace<StandIn>> {
        let len = self.len();
        (len > 0).then(|| InPlace { batch: StandIn(Content::Rows(self.take())), len, bytes: 0 })
    }

    /// Adds the rows of an item of a plan. A single element becomes a row.
    pub(crate) fn add(&mut self, item: &StandIn) {
        match &item.0 {
            Content::Element { id, .. } => {
                self.push(*id, []);
                self.end_row();
            }
            Content::Rows(rows) | Content::Bucket(_, rows) => {
                let before = self.ids.len() as u64;
                self.extend(rows);
                self.ends.extend(rows.ends.iter().map(|end| before + end));
            }
        }
    }

    /// Plans until there are `size` rows or `pass` ends. Rows planned earlier count. A call after an error continues.
    ///
    /// # Errors
    /// Errors of `pass`.
    pub(crate) fn fill<S: Position>(&mut self, size: usize, pass: &mut PlanPass<S>, cx: &mut Cx) -> Result<()> {
        while let Some(missing) = size.checked_sub(self.len()).filter(|&missing| missing > 0) {
            let rows = match pass.next_stacked(missing, cx) {
                Some(batch) => batch?.map(|batch| batch.batch),
                None => pass.next(cx)?,
            };
            match rows {
                Some(rows) => self.add(&rows),
                None => break,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The members of a row: border, index, piece and part.
    type Row = Vec<(u32, u64, u32, Vec<u64>)>;

    fn planned(rows: &[Row]) -> PlannedRows {
        let mut planned = PlannedRows::default();
        for row in rows {
            let id = |border: &u32, index: &u64, piece: &u32| ElementId::new(*border, *index, *piece);
            row.iter()
                .for_each(|(border, index, piece, cut)| planned.push(id(border, index, piece), cut.iter().copied()));
            planned.end_row();
        }
        planned
    }

    fn recipes(rows: &[Row]) -> Vec<Recipe> {
        let member = |(border, index, piece, cut): &(u32, u64, u32, Vec<u64>)| Member {
            id: ElementId::new(*border, *index, *piece),
            cut: (!cut.is_empty()).then(|| cut.clone().into()),
        };
        rows.iter().map(|row| row.iter().map(member).collect()).collect()
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let cut = prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u64>(), 0..4)];
        prop::collection::vec(prop::collection::vec((any::<u32>(), any::<u64>(), any::<u32>(), cut), 0..4), 0..8)
    }

    proptest! {
        /// Rows added in any grouping stay unchanged, and have equal digests.
        #[test]
        fn rows_are_what_went_in(all in rows(), at in any::<prop::sample::Index>()) {
            let (first, second) = all.split_at(at.index(all.len() + 1));
            let (whole, mut parts) = (planned(&all), PlannedRows::default());
            planned(first).take_batch().into_iter().for_each(|rows| parts.add(&rows.batch));
            planned(second).take_batch().into_iter().for_each(|rows| parts.add(&rows.batch));
            prop_assert_eq!(&parts, &whole);
            prop_assert_eq!(parts.digest(), whole.digest());
            let found: Vec<_> = (0..whole.len()).map(|row| whole.recipe(row)).collect();
            prop_assert_eq!(found, recipes(&all));
            prop_assert!(whole.recipe(all.len()).is_empty());
        }

        #[test]
        fn other_rows_have_another_digest(one in rows(), other in rows()) {
            prop_assert_eq!(planned(&one).digest() == planned(&other).digest(), one == other);
        }
    }

    #[test]
    fn a_row_is_put_together_of_rows_under_way() {
        let (mut one, mut other, mut both) = (PlannedRows::default(), PlannedRows::default(), PlannedRows::default());
        one.push(ElementId::new(0, 1, 2), []);
        other.push(ElementId::new(0, 3, 4), [5]);
        both.extend(&one);
        both.extend(&other);
        both.end_row();
        assert_eq!(both, planned(&[vec![(0, 1, 2, vec![]), (0, 3, 4, vec![5])]]));
        both.clear();
        assert_eq!(both, PlannedRows::default());
    }
}

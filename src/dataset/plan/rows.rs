//! Planned rows and their member elements, stored as columns of numbers without an allocation per row.

use super::PlanPass;
use super::stand_in::{Member, Recipe, recipe};
use crate::cx::Cx;
use crate::dataset::iter::{DatasetIterator, InPlace, Position};
use crate::element::{Array, Element, Name, StreamHasher, Tag, Value};
use crate::error::Result;

/// The fields of an element that holds planned rows. No field of a pipeline has such a name.
const ENDS: Name = Name::new_static("\0rows");
const IDS: Name = Name::new_static("\0members");
const CUTS: Name = Name::new_static("\0cuts");
const CUT_ENDS: Name = Name::new_static("\0cut_ends");

/// Planned rows, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedRows {
    /// For each row, the number of members up to and including the row.
    ends: Vec<u64>,
    /// For each member, its index, and its border and piece.
    ids: Vec<Tag>,
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
    pub(crate) fn push(&mut self, id: Tag, cut: impl IntoIterator<Item = u64>) {
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

    /// Adds the members of the current row of `other` to the current row. `other` must not have ended a row.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.extend_by(&other.ids, &other.cuts, &other.cut_ends);
    }

    /// Adds members with their parts to the current row.
    fn extend_by(&mut self, ids: &[Tag], cuts: &[u64], cut_ends: &[u64]) {
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
    fn members(&self, row: usize) -> std::ops::Range<usize> {
        let end = |row: usize| self.ends.get(row).map_or(self.ids.len(), |&end| end as usize);
        row.checked_sub(1).map_or(0, end)..end(row)
    }

    /// Returns the part of a member; empty for the whole member.
    fn cut(&self, member: usize) -> &[u64] {
        let Some(&end) = self.cut_ends.get(member) else { return &[] };
        let start = member.checked_sub(1).map_or(0, |before| self.cut_ends[before]);
        self.cuts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns the members of row number `row`; empty if the row does not exist.
    pub(crate) fn recipe(&self, row: usize) -> Recipe {
        let member = |at: usize| {
            let [slot, place] = self.ids[at];
            let cut = Some(self.cut(at)).filter(|cut| !cut.is_empty()).map(Into::into);
            Member { leaf: (place >> 32) as u32, slot, piece: place as u32, cut }
        };
        self.members(row).map(member).collect()
    }

    /// Hashes the members of each row. The digest does not depend on how the rows were added.
    pub(crate) fn digest(&self) -> u128 {
        let mut hasher = StreamHasher::new();
        for numbers in [&self.ends, self.ids.as_flattened(), &self.cuts, &self.cut_ends] {
            hasher.bytes(bytemuck::cast_slice(numbers));
        }
        hasher.finish()
    }

    /// Takes all rows as a single element.
    pub(crate) fn take(&mut self) -> Element {
        let array = |numbers| Value::Array(Array::from_vec(numbers));
        let ends = array(with_room_again(&mut self.ends));
        let mut fields = vec![(ENDS, ends), (IDS, array(with_room_again(&mut self.ids).into_flattened()))];
        if !self.cut_ends.is_empty() {
            fields.push((CUTS, array(with_room_again(&mut self.cuts))));
            fields.push((CUT_ENDS, array(with_room_again(&mut self.cut_ends))));
        }
        Element::from_unique(fields)
    }

    /// Takes the rows as a batch. Returns `None` if there are no rows.
    pub(crate) fn take_batch(&mut self) -> Option<InPlace<Element>> {
        let len = self.len();
        (len > 0).then(|| InPlace { batch: self.take(), len, bytes: 0 })
    }

    /// Adds the rows of an element returned by [`take`](Self::take), or the row of a stand-in.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the element is not a stand-in.
    pub(crate) fn add(&mut self, stand_in: &Element) -> Result<()> {
        let numbers = |name: &Name| match stand_in.get(name) {
            Some(Value::Array(array)) => array.as_slice::<u64>(),
            _ => Ok(&[][..]),
        };
        if stand_in.get(&ENDS).is_none() {
            for Member { leaf, slot, piece, cut } in recipe(stand_in)? {
                let place = u64::from(leaf) << 32 | u64::from(piece);
                self.push([slot, place], cut.iter().flat_map(|cut| cut.iter().copied()));
            }
            self.end_row();
            return Ok(());
        }
        let [ends, ids, cuts, cut_ends] = [&ENDS, &IDS, &CUTS, &CUT_ENDS].map(numbers);
        let (ends, ids, cuts, cut_ends) = (ends?, ids?, cuts?, cut_ends?);
        let before = self.ids.len() as u64;
        self.extend_by(ids.as_chunks().0, cuts, cut_ends);
        self.ends.extend(ends.iter().map(|end| before + end));
        Ok(())
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
                Some(rows) => self.add(&rows)?,
                None => break,
            }
        }
        Ok(())
    }
}

/// Takes a list, and leaves an empty list of similar capacity.
fn with_room_again<T>(listed: &mut Vec<T>) -> Vec<T> {
    let room = listed.len();
    std::mem::replace(listed, Vec::with_capacity(room))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The members of a row: index, border and piece, and part.
    type Row = Vec<(u64, u64, Vec<u64>)>;

    fn planned(rows: &[Row]) -> PlannedRows {
        let mut planned = PlannedRows::default();
        for row in rows {
            row.iter().for_each(|(index, place, cut)| planned.push([*index, *place], cut.iter().copied()));
            planned.end_row();
        }
        planned
    }

    fn recipes(rows: &[Row]) -> Vec<Recipe> {
        let member = |(slot, place, cut): &(u64, u64, Vec<u64>)| Member {
            leaf: (place >> 32) as u32,
            slot: *slot,
            piece: *place as u32,
            cut: (!cut.is_empty()).then(|| cut.clone().into()),
        };
        rows.iter().map(|row| row.iter().map(member).collect()).collect()
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let cut = prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u64>(), 0..4)];
        prop::collection::vec(prop::collection::vec((any::<u64>(), any::<u64>(), cut), 0..4), 0..8)
    }

    proptest! {
        /// Rows added in any grouping stay unchanged, and have equal digests.
        #[test]
        fn rows_are_what_went_in(all in rows(), at in any::<prop::sample::Index>()) {
            let (first, second) = all.split_at(at.index(all.len() + 1));
            let (whole, mut parts) = (planned(&all), PlannedRows::default());
            parts.add(&planned(first).take()).unwrap();
            parts.add(&planned(second).take()).unwrap();
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
        one.push([1, 2], []);
        other.push([3, 4], [5]);
        both.extend(&one);
        both.extend(&other);
        both.end_row();
        assert_eq!(both, planned(&[vec![(1, 2, vec![]), (3, 4, vec![5])]]));
        both.clear();
        assert!(both == PlannedRows::default() && PlannedRows::default().add(&Element::new()).is_err());
    }
}

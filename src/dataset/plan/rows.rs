//! Rows that are planned: of each, which elements it is made of. They are columns of numbers, without memory for each row.

use super::PlanPass;
use super::stand_in::{Member, Recipe, recipe};
use crate::cx::Cx;
use crate::dataset::iter::{DatasetIterator, InPlace, Position};
use crate::element::{Array, Element, Name, StreamHasher, Tag, Value};
use crate::error::Result;

/// The fields of an element that stands for rows. No field of a pipeline has such a name.
const ENDS: Name = Name::new_static("\0rows");
const IDS: Name = Name::new_static("\0members");
const CUTS: Name = Name::new_static("\0cuts");
const CUT_ENDS: Name = Name::new_static("\0cut_ends");

/// Planned rows, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlannedRows {
    /// Of each row, the number of members up to its end.
    ends: Vec<u64>,
    /// Of each member, its index, and its border and piece.
    ids: Vec<Tag>,
    /// The parts of members that are cut, one behind the other, and of each member where its part ends; no ends, where none is cut.
    cuts: Vec<u64>,
    cut_ends: Vec<u64>,
}

impl PlannedRows {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.ids.clear();
        self.cuts.clear();
        self.cut_ends.clear();
    }

    /// Adds a member to the row under way; `cut` is the part of it that is in the row, empty for all of it.
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

    /// Ends the row under way.
    #[inline]
    pub(crate) fn end_row(&mut self) {
        self.ends.push(self.ids.len() as u64);
    }

    /// Adds the members of another's row under way, of which it knows no row, to the row under way.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.extend_by(&other.ids, &other.cuts, &other.cut_ends);
    }

    /// Adds these members, whose parts are as they stand here, to the row under way.
    fn extend_by(&mut self, ids: &[Tag], cuts: &[u64], cut_ends: &[u64]) {
        let (members, before) = (self.ids.len(), self.cuts.len() as u64);
        self.ids.extend_from_slice(ids);
        if cut_ends.is_empty() && self.cut_ends.is_empty() {
            return;
        }
        self.cuts.extend_from_slice(cuts);
        // Those without parts are whole: their parts end where they begin.
        self.cut_ends.resize(members, before);
        self.cut_ends.extend(cut_ends.iter().map(|end| before + end));
        self.cut_ends.resize(self.ids.len(), self.cuts.len() as u64);
    }

    /// Where the members of a row are.
    fn members(&self, row: usize) -> std::ops::Range<usize> {
        let end = |row: usize| self.ends.get(row).map_or(self.ids.len(), |&end| end as usize);
        row.checked_sub(1).map_or(0, end)..end(row)
    }

    /// The part of a member, empty for all of it.
    fn cut(&self, member: usize) -> &[u64] {
        let Some(&end) = self.cut_ends.get(member) else { return &[] };
        let start = member.checked_sub(1).map_or(0, |before| self.cut_ends[before]);
        self.cuts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The elements that row `row` is made of; none if there is no such row.
    pub(crate) fn recipe(&self, row: usize) -> Recipe {
        let member = |at: usize| {
            let [slot, place] = self.ids[at];
            let cut = Some(self.cut(at)).filter(|cut| !cut.is_empty()).map(Into::into);
            Member { leaf: (place >> 32) as u32, slot, piece: place as u32, cut }
        };
        self.members(row).map(member).collect()
    }

    /// Hashes which elements each row is made of, whatever way they have come.
    pub(crate) fn digest(&self) -> u128 {
        let mut hasher = StreamHasher::new();
        for numbers in [&self.ends, self.ids.as_flattened(), &self.cuts, &self.cut_ends] {
            hasher.bytes(bytemuck::cast_slice(numbers));
        }
        hasher.finish()
    }

    /// Takes the rows as an element that stands for all of them.
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

    /// The same as a batch; `None` if there are none.
    pub(crate) fn take_batch(&mut self) -> Option<InPlace<Element>> {
        let len = self.len();
        (len > 0).then(|| InPlace { batch: self.take(), len, bytes: 0 })
    }

    /// Adds the rows that an element stands for: those that were [taken](Self::take), or the one of a stand-in.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if it stands for none.
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

    /// Plans until there are `size` rows, or no more come: what is there already counts. Where that fails, it may be gone on with.
    ///
    /// # Errors
    /// Those of `pass`.
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

/// Takes what is listed; the next ones are about as many.
fn with_room_again<T>(listed: &mut Vec<T>) -> Vec<T> {
    let room = listed.len();
    std::mem::replace(listed, Vec::with_capacity(room))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Members of rows: index, border and piece, and part.
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
        /// However rows are put together, they are those that went in, and have one digest.
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

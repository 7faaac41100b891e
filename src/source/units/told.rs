//! Rows that passes have announced.

use std::collections::VecDeque;
use std::sync::Weak;

use super::Key;
use super::keys::ByKey;

/// Announced rows of all passes that were not read yet.
#[derive(Default)]
pub(super) struct Told {
    passes: Vec<Pass>,
}

struct Pass {
    /// Expired once the pass has ended or moved elsewhere.
    wanted: Weak<()>,
    /// Announced rows of each unit, in the order of the announcement.
    rows: ByKey<VecDeque<u32>>,
    len: u64,
    /// The last announced index.
    last: Option<u64>,
}

impl Told {
    /// Adds announced rows: the index of each row, its unit and its row in the unit. Skips a row that directly follows
    /// the previous row, because sequential reads find the last used unit.
    pub(super) fn add(&mut self, wanted: &Weak<()>, places: Vec<(u64, Key, u32)>) {
        self.passes.retain(|pass| pass.wanted.strong_count() > 0);
        let at = self.passes.iter().position(|pass| pass.wanted.ptr_eq(wanted)).unwrap_or_else(|| {
            self.passes.push(Pass { wanted: wanted.clone(), rows: ByKey::default(), len: 0, last: None });
            self.passes.len() - 1
        });
        let pass = &mut self.passes[at];
        for (index, key, row) in places {
            if pass.last.replace(index).is_none_or(|last| last.checked_add(1) != Some(index)) {
                pass.rows.entry(key).or_default().push_back(row);
                pass.len += 1;
            }
        }
    }

    /// Returns true if an active pass has announced rows that were not read yet.
    pub(super) fn is_live(&self) -> bool {
        self.passes.iter().any(|pass| pass.len > 0 && pass.wanted.strong_count() > 0)
    }

    /// Returns the number of announced rows of all passes.
    pub(super) fn len(&self) -> u64 {
        self.passes.iter().map(|pass| pass.len).sum()
    }

    /// Returns the announced rows of a unit, in ascending order.
    pub(super) fn rows(&self, key: Key) -> Vec<u32> {
        let live = self.passes.iter().filter(|pass| pass.wanted.strong_count() > 0);
        let mut rows: Vec<u32> = live.filter_map(|pass| pass.rows.get(&key)).flatten().copied().collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Removes a row that is read now. Returns true if the row was announced.
    pub(super) fn remove(&mut self, key: Key, row: usize) -> bool {
        let mut known = false;
        for pass in self.passes.iter_mut().filter(|pass| pass.len > 0) {
            let Some(rows) = pass.rows.get_mut(&key) else { continue };
            // Near the front, because rows are read in about the announced order.
            let Some(at) = rows.iter().position(|&told| told as usize == row) else { continue };
            rows.remove(at);
            if rows.is_empty() {
                pass.rows.remove(&key);
            }
            (pass.len, known) = (pass.len - 1, true);
        }
        known
    }
}

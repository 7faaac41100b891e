//! Rows that passes will ask for.

use std::collections::VecDeque;
use std::sync::Weak;

use super::Key;
use super::keys::ByKey;

/// Rows that will be asked for, of every pass that told of some.
#[derive(Default)]
pub(super) struct Told {
    passes: Vec<Pass>,
}

struct Pass {
    /// Dead once the pass has ended or gone on elsewhere.
    wanted: Weak<()>,
    /// In the order in which they will be asked for.
    rows: ByKey<VecDeque<u32>>,
    len: u64,
    /// The index that was told of last.
    last: Option<u64>,
}

impl Told {
    /// Takes in rows: the index of each, its unit and its row there. Those that follow the one before are left out: what is read
    /// in order finds the unit that was used last.
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

    /// Whether any pass will ask for rows.
    pub(super) fn is_live(&self) -> bool {
        self.passes.iter().any(|pass| pass.len > 0 && pass.wanted.strong_count() > 0)
    }

    /// Rows that will be asked for, together.
    pub(super) fn len(&self) -> u64 {
        self.passes.iter().map(|pass| pass.len).sum()
    }

    /// Rows of a unit that will be asked for, in ascending order.
    pub(super) fn rows(&self, key: Key) -> Vec<u32> {
        let live = self.passes.iter().filter(|pass| pass.wanted.strong_count() > 0);
        let mut rows: Vec<u32> = live.filter_map(|pass| pass.rows.get(&key)).flatten().copied().collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// A row is asked for now; whether that was told.
    pub(super) fn remove(&mut self, key: Key, row: usize) -> bool {
        let mut known = false;
        for pass in self.passes.iter_mut().filter(|pass| pass.len > 0) {
            let Some(rows) = pass.rows.get_mut(&key) else { continue };
            // Near the front: they come about in the order in which they were told of.
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

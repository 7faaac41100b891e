//! Walks over the nodes of a pipeline.

use std::ops::Range;

use super::blocks::Blocks;
use super::node::{Indices, Work};
use super::run::upcoming::{Record, Upcoming};
use super::stage::{Role, Stage, label};
use crate::error::Result;

impl dyn Stage + '_ {
    /// Returns the [name](super::Node::name) of the stage.
    pub fn name(&self) -> &'static str {
        self.node().name
    }

    /// Returns the [role](super::Node::role) of the stage.
    pub fn role(&self) -> Role {
        self.node().role
    }

    /// Returns the [arguments](super::Describe::params) of the stage.
    pub fn params(&self) -> String {
        self.node().describe.params()
    }

    /// Returns the number of nodes in the pipeline that ends here.
    pub fn count(&self) -> usize {
        1 + self.parents().iter().map(|p| p.count()).sum::<usize>()
    }

    /// Calls `visit` for every node in post-order, parents first. The position is the node's stage id.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(usize, &'a dyn Stage)) {
        fn go<'a>(node: &'a (dyn Stage + 'a), next: &mut usize, visit: &mut dyn FnMut(usize, &'a dyn Stage)) {
            for parent in node.parents() {
                go(parent, next, visit);
            }
            visit(*next, node);
            *next += 1;
        }
        go(self, &mut 0, visit);
    }

    /// Returns the parents, each with its stage id. `id` is the id of this stage.
    pub(crate) fn parents_by_id(&self, id: usize) -> Vec<(usize, &dyn Stage)> {
        let mut first = id + 1 - self.count();
        let last = |parent: &dyn Stage| {
            first += parent.count();
            first - 1
        };
        let parents = self.parents();
        parents.iter().copied().map(last).zip(parents.iter().copied()).collect()
    }

    /// Returns `name(params)` of every node, in post-order: the content of a fingerprint.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(&mut |_, node| lines.push(label(node)));
        lines
    }

    /// Returns the stage id of each source, with up to `most` of its [files](super::Records::files).
    pub(crate) fn source_files(&self, most: usize) -> Vec<(usize, Vec<String>)> {
        let mut sources = Vec::new();
        self.walk(&mut |id, stage| {
            if stage.role() == Role::Source {
                let mut files = stage.node().source.map_or_else(Vec::new, |source| source.files());
                files.truncate(most);
                sources.push((id, files));
            }
        });
        sources
    }

    /// Returns the lines of older fingerprints, which are still accepted: each border is at its prefix's cut.
    pub(crate) fn lines_with_cuts(&self) -> Vec<String> {
        let (mut lines, mut cut) = (Vec::new(), None);
        self.walk(&mut |_, node| {
            match cut.take_if(|_| node.node().work == Work::Border) {
                Some(at) => lines.insert(at, label(node)),
                None => lines.push(label(node)),
            }
            if node.node().is_cut {
                cut = Some(lines.len());
            }
        });
        lines
    }

    /// Returns true if an index may yield no element.
    pub fn may_drop(&self) -> bool {
        let dropped = || self.role() >= Role::MayDrop || self.parents().iter().any(|p| p.may_drop());
        !self.node().has_every_index && dropped()
    }

    /// Returns true if the pipeline yields the elements of a single source unchanged, in any order.
    pub(crate) fn only_orders(&self) -> bool {
        match (self.role(), self.parents().as_slice()) {
            (Role::Source, _) => true,
            (Role::Order, [parent]) => parent.only_orders(),
            _ => false,
        }
    }

    /// Returns true if all work of the pipeline is [native](super::Node::is_native).
    pub fn all_native(&self) -> bool {
        self.node().is_native && self.parents().iter().all(|p| p.all_native())
    }

    /// Returns true if any source [reads many at once](super::Node::reads).
    pub fn any_reads_together(&self) -> bool {
        self.node().reads.together || self.parents().iter().any(|p| p.any_reads_together())
    }

    /// Returns true if any source [reads from a store](super::Node::reads).
    pub fn any_reads_far(&self) -> bool {
        self.node().reads.far || self.parents().iter().any(|p| p.any_reads_far())
    }

    /// Returns true if the source [has columns](super::Node::has_columns), and later stages change only order and names.
    pub fn stacks(&self) -> bool {
        match (self.role(), self.parents().as_slice()) {
            (Role::Source, _) => self.node().has_columns,
            (Role::Order, [parent]) => parent.stacks(),
            (Role::Elementwise, [parent]) => self.node().has_columns && parent.stacks(),
            _ => false,
        }
    }

    /// Returns true if elements have left the workers, because this or an earlier stage is a border or a cut.
    pub(in crate::dataset) fn leaves_workers(&self) -> bool {
        self.node().work == Work::Border || self.node().is_cut || self.parents().iter().any(|p| p.leaves_workers())
    }

    /// Returns true if workers evaluate any stage: before a border, or functions of a stream that this process reads.
    pub(crate) fn employs_workers(&self) -> bool {
        let is_fed = self.node().work == Work::Chunks && !self.parents().iter().any(|p| p.leaves_workers());
        is_fed || self.node().work == Work::Border || self.parents().iter().any(|p| p.employs_workers())
    }

    /// Returns true if an executor evaluates only a part of the pipeline: see [`is_cut`](super::Node::is_cut).
    pub(in crate::dataset) fn any_cut(&self) -> bool {
        self.node().is_cut || self.parents().iter().any(|p| p.any_cut())
    }

    /// Calls `visit` for every node in post-order, like [`walk`](Self::walk). The flag is true if the node runs in
    /// order, in the reader of the stream: neither before a border nor as a function of single elements.
    pub(crate) fn walk_in_order<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Stage, bool)) {
        fn go<'a>(node: &'a (dyn Stage + 'a), below: bool, visit: &mut dyn FnMut(&'a dyn Stage, bool)) {
            for parent in node.parents() {
                go(parent, below || node.node().work == Work::Border, visit);
            }
            let is_order = node.node().work == Work::Border && node.role() == Role::Order;
            visit(node, !below && !is_order && node.node().work != Work::Chunks);
        }
        go(self, false, visit);
    }

    /// Checks every node. The error names the node that failed.
    pub fn check_all(&self) -> Result<()> {
        let mut result = Ok(());
        self.walk(&mut |id, node| {
            if result.is_ok() {
                result = node.node().describe.check().map_err(|e| e.stage(format!("{id} {}", node.name())));
            }
        });
        result
    }

    /// Returns the number of elements to [announce](super::Moves::will_read) ahead; `None` if no source uses the
    /// announcements.
    pub fn looks_ahead(&self) -> Option<u64> {
        let parents = self.parents().iter().filter_map(|parent| parent.looks_ahead()).max();
        if let Indices::Moved(moves) = self.node().indices { moves.looks_ahead(parents) } else { parents }
    }

    /// Announces the next elements to the sources: see [`Moves::will_read`](super::Moves::will_read).
    pub fn will_read(&self, next: Upcoming<'_>) {
        match self.node().indices {
            Indices::Moved(moves) => moves.will_read(next),
            Indices::Kept | Indices::ByElement => self.parents().iter().for_each(|parent| parent.will_read(next)),
            Indices::Unknown => {}
        }
    }

    /// Returns the index of the element made of `record`: see [`Moves::comes_at`](super::Moves::comes_at).
    pub fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        match self.node().indices {
            Indices::Moved(moves) => moves.comes_at(record, epoch),
            Indices::Kept | Indices::ByElement => self.parents().iter().find_map(|p| p.comes_at(record, epoch)),
            Indices::Unknown => None,
        }
    }

    /// Returns the runs of elements that are read together: see [`Moves::blocks`](super::Moves::blocks).
    pub fn blocks(&self) -> Option<Blocks> {
        match (self.node().indices, self.parents().as_slice()) {
            (Indices::Moved(moves), _) => moves.blocks(),
            (Indices::Kept | Indices::ByElement, [parent]) => parent.blocks(),
            _ => None,
        }
    }

    /// Returns the parent's indices for `indices`, if other processes cannot compute them.
    pub(in crate::dataset) fn listed(&self, indices: Range<u64>) -> Option<Vec<u64>> {
        if let Indices::Moved(moves) = self.node().indices { moves.listed(indices) } else { None }
    }

    /// Checks that elements can leave worker processes if this stage or its parents run there. Called before workers
    /// start.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that names the unsupported type.
    pub(crate) fn check_crossing(&self) -> Result<()> {
        match self.node().crossing {
            Some(check) => check(self),
            None => self.parents().iter().try_for_each(|parent| parent.check_crossing()),
        }
    }
}

//! Slots for an extent.

use super::cross::Cross;
use super::crossing::Crossing;
use super::output::{Out, Stop};
use super::rows::{Layout, Run};
use super::stacked::write_stacked;
use super::{DROPPED, ERROR, ITEM, MAGIC, VERSION, WHOLE, WHOLE_ERROR};
use crate::element::Element;
use crate::error::{Error, Result, Told};

/// The extent has no room for the slot, and is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Bytes of an extent that fits this slot alone.
    pub(crate) need: usize,
}

/// The outcome of writing an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes in use, from its start.
    pub(crate) used: usize,
    /// Number of indices that the slots cover.
    pub(crate) indices: u64,
}

/// Writes slots to an extent, one after another.
pub(crate) struct ChunkWriter<'a> {
    out: Out<'a>,
    slots: u64,
    indices: u64,
    /// The last record, if it is a run.
    run: Option<Run>,
    /// Number of items to write individually before the next run. A short run costs more than it saves.
    alone: u32,
}

/// Minimum rows of a run that is not short, and the number of items written individually after a short run.
const SHORT_RUN: u64 = 4;
const ALONE: u32 = 16;

impl<'a> ChunkWriter<'a> {
    /// Starts at the beginning of `buf`. The reader rejects the chunk if the start is not a multiple of 64 in the reader's memory.
    pub(crate) fn new(buf: &'a mut [u8]) -> Self {
        Self { out: Out::new(buf), slots: 0, indices: 0, run: None, alone: 0 }
    }

    /// Adds a slot of a built-in type.
    ///
    /// # Errors
    /// [`Full`] if there is no room. An item that cannot be encoded is replaced by an error.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn push<T: Cross>(&mut self, slot: &Result<Option<T>>) -> Result<(), Full> {
        self.push_with(slot, Crossing::OF)
    }

    /// Adds a slot of a type that was [looked up](super::crossing).
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_with<T>(&mut self, slot: &Result<Option<T>>, crossing: Crossing<T>) -> Result<(), Full> {
        let written = match slot {
            Ok(Some(item)) => self.push_item(item, crossing),
            Ok(None) => self.record(1, |out| out.word(u64::from(DROPPED))),
            Err(error) => return self.push_error(error, None),
        };
        written.unwrap_or_else(|error| self.push_error(&error, None))
    }

    /// Adds an item.
    ///
    /// # Errors
    /// An error of the item if it cannot be encoded; [`Full`] in the inner result if there is no room. Adds nothing in either case.
    pub(crate) fn push_item<T>(&mut self, item: &T, crossing: Crossing<T>) -> Result<Result<(), Full>> {
        if let Some(element) = crossing.rows.and_then(|rows| (rows.element)(item)) {
            if let Some(run) = self.run.as_mut().filter(|run| run.takes(crossing.kind, element)) {
                let pushed = run.push(&mut self.out, element);
                self.indices += u64::from(pushed.is_ok());
                return Ok(pushed.map_err(|_| Full { need: run.need(element) }));
            }
            if let Some(layout) = self.begins(element) {
                let begun = self.record(1, |out| layout.begin(out, crossing.kind, element))?;
                return Ok(begun.map(|count| self.run = Some(Run::new(crossing.kind, layout, count))));
            }
        }
        self.record(1, |out| {
            out.word(u64::from(ITEM) | u64::from(crossing.kind) << 32)?;
            (crossing.write)(item, out)
        })
    }

    /// Returns the layout of a run that begins with `element`, or `None` if `element` is written individually.
    fn begins(&mut self, element: &Element) -> Option<Layout> {
        if self.run.as_ref().is_some_and(|run| run.rows < SHORT_RUN) {
            self.alone = ALONE;
        }
        if self.alone > 0 {
            self.alone -= 1;
            return None;
        }
        Layout::of(element)
    }

    /// Adds the item that `indices` elements were combined into.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_whole<W>(&mut self, whole: &Result<W>, indices: u64, crossing: Crossing<W>) -> Result<(), Full> {
        let written = match whole {
            Ok(whole) => self.record(indices, |out| {
                begin_whole(out, indices, crossing.kind)?;
                (crossing.write)(whole, out)
            }),
            Err(error) => return self.push_error(error, Some(indices)),
        };
        written.unwrap_or_else(|error| self.push_error(&error, Some(indices)))
    }

    /// Adds the batch that `Element::stack` makes of `items`. There must be at least one item. Every row is copied once, to its
    /// final place.
    ///
    /// # Errors
    /// Errors of stacking, without their stage; [`Full`] in the inner result if there is no room. Adds nothing in either case.
    pub(crate) fn push_stacked(&mut self, items: &[&Element]) -> Result<Result<(), Full>> {
        let indices = items.len() as u64;
        self.record(indices, |out| {
            begin_whole(out, indices, Element::KIND)?;
            write_stacked(out, items)
        })
    }

    /// Returns the unused bytes.
    pub(crate) fn room(&self) -> usize {
        self.out.room()
    }

    /// Returns the bytes allocated so far.
    pub(crate) fn taken(&self) -> u64 {
        self.out.taken()
    }

    /// Returns true if the extent has [blocks](super::foreign) that are not part of the output.
    pub(crate) fn has_foreign(&self) -> bool {
        self.out.has_foreign()
    }

    fn push_error(&mut self, error: &Error, whole: Option<u64>) -> Result<(), Full> {
        let told = told(error);
        let written = self.record(whole.unwrap_or(1), |out| {
            if let Some(indices) = whole {
                out.word(u64::from(WHOLE_ERROR))?;
                out.word(indices)?;
            } else {
                out.word(u64::from(ERROR))?
            }
            out.text(&told)
        });
        // Text always fits the format, so the only error is lack of room.
        written.unwrap_or(Err(Full { need: usize::MAX }))
    }

    /// Writes a whole slot or nothing.
    pub(super) fn record<R>(
        &mut self,
        indices: u64,
        write: impl Fn(&mut Out<'_>) -> Result<R, Stop>,
    ) -> Result<Result<R, Full>> {
        let mark = self.out.mark();
        let stop = match write(&mut self.out) {
            Ok(written) => {
                self.slots += 1;
                self.indices += indices;
                self.run = None;
                return Ok(Ok(written));
            }
            Err(stop) => stop,
        };
        self.out.rewind(mark);
        match stop {
            Stop::Full => need(&write).map(|need| Err(Full { need })),
            Stop::Error(error) => Err(error),
        }
    }

    /// Writes the header.
    pub(crate) fn finish(mut self) -> Written {
        let Self { out, slots, indices, .. } = &mut self;
        let words = [MAGIC, VERSION, out.used() as u64, *slots, out.words()];
        for (at, word) in words.into_iter().enumerate() {
            out.put(at * size_of::<u64>(), &word.to_le_bytes());
        }
        Written { used: out.used(), indices: *indices }
    }
}

/// Encodes an error as text.
pub(super) fn told(error: &Error) -> String {
    // This cannot fail: every field has a JSON form, and the structure is not nested.
    serde_json::to_string(&Told::from(error)).unwrap_or_default()
}

fn begin_whole(out: &mut Out<'_>, indices: u64, kind: u32) -> Result<(), Stop> {
    out.word(u64::from(WHOLE) | u64::from(kind) << 32)?;
    out.word(indices)
}

/// Returns the bytes of an extent that fits this slot alone.
#[cold]
fn need<R>(write: impl Fn(&mut Out<'_>) -> Result<R, Stop>) -> Result<usize> {
    let mut out = Out::measure();
    match write(&mut out) {
        Ok(_) => Ok(out.used()),
        Err(Stop::Full) => Ok(usize::MAX),
        Err(Stop::Error(error)) => Err(error),
    }
}
